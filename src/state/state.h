/* state: checkpoints and exported models, as HDF5 files that are complete or absent.
 *
 * A file is a user block of 512 bytes ("dtrain checkpoint 1 crc32c=xxxxxxxx bytes=N\n", padded),
 * followed by HDF5, which the CRC-32C covers. */
#ifndef STATE_STATE_H
#define STATE_STATE_H

#include "base/base.h"
#include "config/config.h"
#include "data/data.h"
#include "model/model.h"

/* The best evaluation so far and the state of early stopping. */
struct dt_best {
    bool known;
    double value; /* value of `metric` */
    double loss;  /* loss of the best */
    char metric[24];
    uint64_t step;   /* step of the best */
    int64_t since;   /* evaluations since the best */
    uint64_t seen;   /* 1 + the step of the last evaluation; 0: none yet */
    bool stop;       /* early stopping has been decided */
    int64_t plateau; /* evaluations since the best, or since the rate fell ... */
    int64_t drops;   /* ... as often as this, with train.schedule=plateau */
    int64_t era;     /* Unix time of the first evaluation with these rows and this metric; 0: they
                      * never changed */
};

/* Vectors besides the weights: an optimizer's, and the error of rounded updates. */
enum { DT_CHECKPOINT_STATE = DT_MAX_STATE + 1 };

/* A model: what prediction needs; or a checkpoint: all that a resume needs. When saving, the
 * pointers are borrowed; when loading, they are allocated, and dt__checkpoint_free frees them. */
struct dt_checkpoint {
    uint64_t step;
    char *config;        /* dt_config_print */
    struct dt_best best; /* of an export best.known: the metric by which it was chosen */
    struct dt_model_desc desc;
    struct dt_schema schema;
    struct dt_certainty certainty; /* of an export; a checkpoint has none */
    uint64_t params_count;         /* P */
    float *params;                 /* (P) */

    /* Only in a checkpoint. */
    int replicas; /* 0: a model */
    int mode;     /* enum dt_mode as it ran (staleness 0 is sync) */
    uint64_t seed;
    uint64_t samples;  /* samples trained, over resumes */
    double wall_secs;  /* over resumes */
    double train_secs; /* training time only, over resumes */
    uint64_t *draws;   /* (replicas) async: draws done by each replica */
    double *loss_sums; /* (replicas) sums of the open log interval, so that records repeat */
    double loss_rows;
    char *kernel;         /* name of the matrix kernel */
    char *history;        /* changes by resumes, one JSON line each; NULL: none */
    uint32_t data_crc;    /* dt__source_crc of the training data */
    uint32_t content_crc; /* dt__source_content of it; 0: unknown */
    float *best_params;   /* (P) weights of best.step if no export holds them yet; NULL: none */
    int nstate;
    const char *state_name[DT_CHECKPOINT_STATE]; /* names as in struct dt_optimizer */
    float *state[DT_CHECKPOINT_STATE];           /* (P) each */

    /* Per group of replicas. Local steps: the optimizer's state of the group; `state` is then that
     * of the outer update. A rounded wire: the group's rounding error, last. 0 groups: none. */
    int groups;
    int group_nstate;
    const char *group_state_name[DT_CHECKPOINT_STATE];
    float **group_state; /* (groups * group_nstate), group by group; (P) each */
    /* train.overlap: (groups) (P) each: change of the weights in the group's last round that
     * `params` do not contain yet; NULL: they contain all. */
    float **group_difference;
};
void dt__checkpoint_free(struct dt_checkpoint *checkpoint);
void dt__checkpoint_drop(struct dt_checkpoint *checkpoint); /* frees only the vectors */

/* Writes the base name of a step's file into `name` and returns it. */
enum { DT_CHECKPOINT_NAME = 32 };
const char *dt__checkpoint_name(uint64_t step, char name[DT_CHECKPOINT_NAME]);

/* Loads a file. Every size is checked before it is an allocation. DT_EIO; DT_EFORMAT: not a
 * checkpoint, wrong checksum, or invalid contents. */
dt_status dt__checkpoint_load(const char *path, struct dt_checkpoint *out);

/* Loads the newest valid checkpoint of DIR: the one that latest.h5 names, then older ones, then
 * those of later steps, which an abandoned branch has left; warns of each file that it skips.
 *
 * *out_found false: there is no checkpoint at all. DT_EFORMAT: there are files, but none is
 * valid. */
dt_status dt__checkpoint_load_newest(const char *dir, struct dt_checkpoint *out, char **out_path,
                                     bool *out_found);
/* Returns the step of the newest checkpoint by name that is a whole file under its final name (not
 * verified); false if there is none. The evaluator polls it. */
bool dt__checkpoint_newest(const char *dir, uint64_t *out_step);

/* ---- writer thread -------------------------------------------------------------------------- */

/* Saves in the background. The call copies the snapshot, so the step's path pays one memcpy; a
 * thread writes DIR/step-%09llu.h5 durably, reads it back to verify the checksum, moves
 * DIR/latest.h5, and removes the oldest files. */
struct dt_writer;

/* The paths are borrowed until the writer is destroyed. */
struct dt_writer_spec {
    const char *dir;                   /* directory of checkpoints */
    int64_t keep;                      /* number of checkpoints kept; 0: all; at least two */
    const char *latest_dir, *best_dir; /* base of dt__export_write; NULL: no such exports */
    int64_t export_keep;
    /* the run's records, synced before each checkpoint, because a run that continues from it does
     * not write them again; NULL: none */
    const char *records;
};
/* Starts the thread. DT_EMEMORY. */
dt_status dt__writer_create(const struct dt_writer_spec *spec, struct dt_writer **out);
void dt__writer_destroy(struct dt_writer *writer); /* waits for a pending save */
bool dt__writer_busy(struct dt_writer *writer);
/* Starts a save of a copy of the checkpoint; waits first if a save is pending. Poll before: the
 * result of an ended save that was not polled is lost, but if it failed, its error is returned and
 * no save starts. */
dt_status dt__writer_start(struct dt_writer *writer, const struct dt_checkpoint *checkpoint);
/* Exports the model of a checkpoint, the best so far by its `best`, below best_dir. The call copies
 * its weights, replacing an earlier best that still waits. Each save exports it first or, if that
 * fails, stores its weights in the checkpoint (best_params); between saves the thread exports it
 * when it has time. A failure is tried again. May run at the same time as a save. */
dt_status dt__writer_best(struct dt_writer *writer, const struct dt_checkpoint *checkpoint);
/* Returns true if a save has ended since the last call, with its status (the error text becomes the
 * caller's), step, base name (valid until the next call) and seconds. `wait`: waits for a pending
 * save. */
struct dt_saved {
    dt_status status;
    uint64_t step;
    const char *file; /* NULL: the save failed */
    double secs;      /* from the start of packing until latest.h5 names the verified file */
    /* Status of the exports with this save; the text is valid until the next save starts. */
    dt_status exported;
    uint64_t export_step; /* step of the export that failed; the best model's may be an earlier
                           * one */
    const char *export_error;
};
bool dt__writer_poll(struct dt_writer *writer, bool wait, struct dt_saved *out);
/* Protects a file (under evaluation) from retention; NULL: none. The file protected before is
 * removed soon if it is beyond the kept ones, at the latest when the writer is destroyed.
 * Thread-safe. */
void dt__writer_protect(struct dt_writer *writer, const char *file);

/* ---- lock ----------------------------------------------------------------------------------- */

/* Holds RUN_DIR/lock (flock; the file has host and pid for the message) until unlocked or the
 * process ends; a stale file does not block. DT_EIO: another process holds it. */
dt_status dt__lock_take(const char *run_dir, int *out_fd);
void dt__lock_drop(int fd);
/* Returns what the lock file says about its holder: "pid 123 on node7"; "" if nothing. Two
 * processes that read the same text see the same run directory. */
enum { DT_LOCK_HOLDER = 128 };
const char *dt__lock_holder(const char *run_dir, char holder[DT_LOCK_HOLDER]);
/* Checks that the run directory on this host, `here`, is the one whose lock has this holder on the
 * host `there`. DT_EIO: it is another one, or there is none. */
dt_status dt__lock_seen(const char *run_dir, const char *holder, const char *here,
                        const char *there);

/* ---- exports -------------------------------------------------------------------------------- */

/* Writes the model of a checkpoint as BASE/<step>/model.h5 (BASE = RUN_DIR/export/latest or
 * .../best). The directory is made under a temporary name, synced, and renamed, so that it appears
 * whole or not at all. An existing version of the same step is replaced. Versions beyond `keep` (0:
 * all stay) are removed, oldest first, never this one; so are versions of later steps, which an
 * abandoned branch left: this version becomes the highest. */
dt_status dt__export_write(const char *base, const struct dt_checkpoint *model, int64_t keep);

/* Finds the model that a path means, wherever a user names one. A file is itself. In a directory it
 * is the first of these that exists:
 *
 *   export/best/N/model.h5, the highest N   a run's best model; skipped if `best` is false
 *   model.h5                                a version's directory
 *   N/model.h5, the highest N               a directory of versions
 *   the newest checkpoint in ckpt           a run
 *   the newest checkpoint in it             a directory of checkpoints
 *
 * *out_file: the file; *out_ckpt (may be NULL): if a directory led to a checkpoint, the directory
 * of checkpoints, where older ones are if this one is damaged; else NULL. The caller frees both.
 *
 * DT_EIO: a directory with none of these, or one that cannot be listed. */
dt_status dt__model_find(const char *path, bool best, char **out_file, char **out_ckpt);
/* Loads the model that dt__model_find finds; for a run without a best model its newest valid
 * checkpoint. *out_path: the file that was loaded. DT_EIO: there is none, or it cannot be read;
 * DT_EFORMAT: not a model, or damaged; DT_EMEMORY. */
dt_status dt__export_load(const char *path, bool best, struct dt_checkpoint *out, char **out_path);
/* Reads the best metric that the highest valid version below BASE records; known = false if there
 * is none. Warns of a version that it skips. */
dt_status dt__export_best(const char *base, struct dt_best *out);
/* Returns true if there is a model below BASE. */
bool dt__export_exists(const char *base);

/* ---- inspect -------------------------------------------------------------------------------- */

/* Prints the contents of a checkpoint, model or shard: layers, optimizer, step, checksum. */
dt_status dt__inspect(const char *path, FILE *out);

#endif
