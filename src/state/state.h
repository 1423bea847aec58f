/* state: checkpoints and exported models, as HDF5 files that are complete or absent.
 *
 * A file is 512 bytes of user block ("dtrain checkpoint 1 crc32c=xxxxxxxx bytes=N\n", padded) and
 * HDF5 behind it, which the CRC-32C covers. */
#ifndef STATE_STATE_H
#define STATE_STATE_H

#include "base/base.h"
#include "config/config.h"
#include "data/data.h"
#include "model/model.h"

/* The best evaluation so far and the state of early stopping. */
struct dt_best {
    bool known;
    double value; /* of `metric` */
    double loss;  /* of the best */
    char metric[16];
    uint64_t step;   /* of the best */
    int64_t since;   /* evaluations since the best */
    uint64_t seen;   /* 1 + the step of the last evaluation; 0: none yet */
    bool stop;       /* early stopping has been decided */
    int64_t plateau; /* evaluations since the best, or since the rate fell ... */
    int64_t drops;   /* ... as often as this, with train.schedule=plateau */
    int64_t era;     /* of these rows and metric: unix time of its begin; 0: they are the first */
};

/* Vectors beside the weights: an optimizer's, and the error of rounded updates. */
enum { DT_CHECKPOINT_STATE = DT_MAX_STATE + 1 };

/* A model: what prediction needs; or a checkpoint: all that a resume needs. Pointers are the
 * owner's: who has it saved lends them, loading makes them and dt__checkpoint_free frees them. */
struct dt_checkpoint {
    uint64_t step;
    char *config;        /* dt_config_print */
    struct dt_best best; /* of an export best.known: the metric that it was chosen by */
    struct dt_model_desc desc;
    struct dt_schema schema;
    uint64_t params_count; /* P */
    float *params;         /* (P) */

    /* Of a checkpoint alone. */
    int replicas; /* 0: a model */
    int mode;     /* enum dt_mode as run (staleness 0 is sync) */
    uint64_t seed;
    uint64_t samples;  /* samples trained, over resumes */
    double wall_secs;  /* over resumes */
    double train_secs; /* training time alone, over resumes */
    uint64_t *draws;   /* (replicas) async: draws that each replica has done */
    double *loss_sums; /* (replicas) of the open log window, so that records repeat */
    double loss_rows;
    char *kernel;         /* of matrix products */
    char *history;        /* what resumes changed: a JSON line each; NULL: nothing */
    uint32_t data_crc;    /* dt__source_crc of the training data */
    uint32_t content_crc; /* dt__source_content of it; 0: not known */
    float *best_params;   /* (P) those of best.step, if they are in no export yet; NULL */
    int nstate;
    const char *state_name[DT_CHECKPOINT_STATE]; /* as struct dt_optimizer has them */
    float *state[DT_CHECKPOINT_STATE];           /* (P) each */

    /* Of each group of replicas. Local steps: its optimizer's state; `state` is the outer update's
     * then. A rounded wire: its rounding error, as the last. 0 groups: none. */
    int groups;
    int group_nstate;
    const char *group_state_name[DT_CHECKPOINT_STATE];
    float **group_state; /* (groups * group_nstate): of group 0, ...; (P) each */
    /* train.overlap: (groups) (P) each: what the group's last round did to its weights, of which
     * `params` do not know yet; NULL: they know of all. */
    float **group_difference;
};
void dt__checkpoint_free(struct dt_checkpoint *checkpoint);
void dt__checkpoint_drop(struct dt_checkpoint *checkpoint); /* frees the vectors alone */

/* Base name of a step's file, into `name`, which is returned. */
enum { DT_CHECKPOINT_NAME = 32 };
const char *dt__checkpoint_name(uint64_t step, char name[DT_CHECKPOINT_NAME]);

/* Loads a file. DT_EIO; DT_EFORMAT: not a checkpoint, checksum, or anything in it that is not as it
 * should be; every size is checked before it is an allocation. */
dt_status dt__checkpoint_load(const char *path, struct dt_checkpoint *out);

/* Loads the newest checkpoint of DIR that verifies: what latest.h5 names, then older ones, then
 * those of later steps, which a branch that was given up has left; warns of each that it passes
 * over.
 * *out_found false: there is none at all. DT_EFORMAT: files, none good. */
dt_status dt__checkpoint_load_newest(const char *dir, struct dt_checkpoint *out, char **out_path,
                                     bool *out_found);
/* Step of the newest checkpoint by name that is a whole file under its final name (no
 * verification); false if none. For the evaluator's watch. */
bool dt__checkpoint_newest(const char *dir, uint64_t *out_step);

/* ---- writer thread -------------------------------------------------------------------------- */

/* Saves in the background: the snapshot is copied at the call (the step's path pays one memcpy),
 * and a thread writes DIR/step-%09llu.h5 durably, reads it back to verify the checksum, moves
 * DIR/latest.h5, and removes the oldest. */
struct dt_writer;

/* The paths are lent until the writer is destroyed. */
struct dt_writer_spec {
    const char *dir;                   /* of checkpoints */
    int64_t keep;                      /* of them; 0: all stay; two at least stay */
    const char *latest_dir, *best_dir; /* as dt__export_write's base; NULL: no such exports */
    int64_t export_keep;
    /* the run's records, which are synced before each checkpoint: what goes on from there does not
     * write them again; NULL: none */
    const char *records;
};
/* Starts the thread. DT_EMEMORY. */
dt_status dt__writer_create(const struct dt_writer_spec *spec, struct dt_writer **out);
void dt__writer_destroy(struct dt_writer *writer); /* waits for a save under way */
bool dt__writer_busy(struct dt_writer *writer);
/* Starts a save of a copy of the checkpoint; waits first if one is under way. Poll before: a save
 * that has ended unseen is forgotten, but if it failed its error is returned and nothing starts. */
dt_status dt__writer_start(struct dt_writer *writer, const struct dt_checkpoint *checkpoint);
/* Has the model of a checkpoint, whose `best` says why it is the best, exported below best_dir. Its
 * weights are copied at the call; a copy of an earlier best that still waits gives way. Each save
 * exports it first, or takes its weights along in the checkpoint (best_params) if that fails;
 * between saves the thread does it when it has time. What failed is tried again. Thread-safe
 * against saves. */
dt_status dt__writer_best(struct dt_writer *writer, const struct dt_checkpoint *checkpoint);
/* A save that has ended since the last call: true, with its status (the error text becomes the
 * caller's), step, base name (valid until the next call) and seconds. `wait`: waits for one under
 * way. */
struct dt_saved {
    dt_status status;
    uint64_t step;
    const char *file; /* NULL: the save itself failed */
    double secs;      /* from the start of packing until latest.h5 names the verified file */
    /* Of the exports that go with it; the text is valid until the next save starts. */
    dt_status exported;
    uint64_t export_step; /* of the export that failed; the best model's may be an earlier one */
    const char *export_error;
};
bool dt__writer_poll(struct dt_writer *writer, bool wait, struct dt_saved *out);
/* A file that retention must leave alone (under evaluation); NULL: none. The one before goes
 * soon if it is beyond what is kept, at the latest as the writer is destroyed. Thread-safe. */
void dt__writer_protect(struct dt_writer *writer, const char *file);

/* ---- lock ----------------------------------------------------------------------------------- */

/* Holds RUN_DIR/lock (flock, with host and pid inside for the message) until unlocked or the
 * process ends; a stale file does not block. DT_EIO: another process holds it. */
dt_status dt__lock_take(const char *run_dir, int *out_fd);
void dt__lock_drop(int fd);
/* What the lock file says of its holder: "pid 123 on node7"; "" if it says nothing. Two processes
 * that read the same see the same run directory. */
enum { DT_LOCK_HOLDER = 128 };
const char *dt__lock_holder(const char *run_dir, char holder[DT_LOCK_HOLDER]);

/* ---- exports -------------------------------------------------------------------------------- */

/* Writes the model of a checkpoint as BASE/<step>/model.h5 (BASE = RUN_DIR/export/latest or
 * .../best): a directory under a temporary name, synced, then renamed: it appears whole or not at
 * all. An existing version of the same step is replaced. Versions beyond `keep` (0: all stay) are
 * removed, oldest first, never this one; so are those of later steps, left by a branch that was
 * given up: this one is the highest. */
dt_status dt__export_write(const char *base, const struct dt_checkpoint *model, int64_t keep);

/* Which model a path stands for, wherever one is named. A file is itself. A directory is the first
 * of these that there is:
 *   export/best/N/model.h5, the highest N   of a run its best model; `best` false: passed over
 *   model.h5                                of a version's directory
 *   N/model.h5, the highest N               of a directory of versions
 *   the newest checkpoint in ckpt           of a run
 *   the newest checkpoint in it             of a directory of checkpoints
 * *out_file: the file; *out_ckpt (may be NULL): of a checkpoint that stands for a directory the
 * directory of checkpoints, where older ones are if it should be damaged, else NULL. The caller
 * frees both.
 * DT_EIO: a directory that holds none of these, or cannot be listed. */
dt_status dt__model_find(const char *path, bool best, char **out_file, char **out_ckpt);
/* Loads the model of what dt__model_find finds, of a run without best model its newest good
 * checkpoint. *out_path: the file that it came from. DT_EIO: there is none, or it cannot be read;
 * DT_EFORMAT: not a model, or damaged; DT_EMEMORY. */
dt_status dt__export_load(const char *path, bool best, struct dt_checkpoint *out, char **out_path);
/* The best metric as the highest good version below BASE records it; known = false if there is
 * none. Warns of a version that it passes over. */
dt_status dt__export_best(const char *base, struct dt_best *out);

/* ---- inspect -------------------------------------------------------------------------------- */

/* Says what a checkpoint, model or shard holds: layers, optimizer, step, checksum. */
dt_status dt__inspect(const char *path, FILE *out);

#endif
