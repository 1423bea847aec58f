/* state: checkpoints and exported models, HDF5 files that appear whole or not at all.
 *
 * A file is a user block of 512 bytes ("dtrain checkpoint 1 crc32c=xxxxxxxx bytes=N\n", padded with
 * zeros), followed by the HDF5 part, which the CRC-32C covers. */
#ifndef STATE_STATE_H
#define STATE_STATE_H

#include "base/base.h"
#include "config/config.h"
#include "data/data.h"
#include "model/model.h"

/* The best evaluation so far and the state of early stopping. */
struct dt_best {
    bool known;
    double value; /* the best value of `metric` */
    double loss;  /* the loss with it */
    char metric[24];
    uint64_t step;   /* the step with it */
    int64_t since;   /* number of evaluations since the best */
    uint64_t seen;   /* 1 + the step of the last evaluation; 0: none yet */
    bool stop;       /* early stopping has been decided */
    int64_t plateau; /* train.schedule=plateau: number of evaluations since the best or the last
                      * drop of the rate */
    int64_t drops;   /* train.schedule=plateau: number of drops */
    int64_t era;     /* Unix time of the first evaluation with the current rows and metric; 0: both
                      * are those from the start */
};

/* The most vectors of state: an optimizer's, and the rounding error of updates. */
enum { DT_CHECKPOINT_STATE = DT_MAX_STATE + 1 };

/* A model: what prediction needs. Or a checkpoint: all that a resume needs. For saving, the caller
 * lends the memory that the pointers point to; loading allocates it, and dt__checkpoint_free frees
 * it. */
struct dt_checkpoint {
    uint64_t step;
    char *config;        /* the text of dt_config_print */
    struct dt_best best; /* in an export with best.known: the metric by which it was chosen */
    struct dt_model_desc desc;
    struct dt_schema schema;
    struct dt_certainty certainty; /* only in exports; a checkpoint has none */
    uint64_t params_count;         /* number of parameters, P */
    float *params;                 /* (P) */

    /* The following members are only in a checkpoint. */
    int replicas; /* 0: this is a model */
    int mode;     /* enum dt_mode; async with staleness 0 is stored as sync */
    uint64_t seed;
    uint64_t samples;  /* samples trained since step 0, over all resumes */
    double wall_secs;  /* seconds of running, over all resumes */
    double train_secs; /* seconds of training only, over all resumes */
    uint64_t *draws;   /* (replicas) async: number of draws that each replica has finished */
    double *loss_sums; /* (replicas) loss sums of the unfinished log interval, so that a resume
                        * repeats its record */
    double loss_rows;
    char *kernel;         /* name of the matrix kernel */
    char *history;        /* one JSON line for each change made by a resume; NULL: none */
    uint32_t data_crc;    /* dt__source_crc of the training data */
    uint32_t content_crc; /* dt__source_content of the training data; 0: unknown */
    float *best_params;   /* (P) weights of best.step, if no export holds them yet; else NULL */
    int nstate;
    const char *state_name[DT_CHECKPOINT_STATE]; /* from struct dt_optimizer */
    float *state[DT_CHECKPOINT_STATE];           /* (P) each */

    /* State per group of replicas. With local steps it is the optimizer's state of each group, and
     * `state` belongs to the outer update. With a rounded wire the last vector is the group's
     * rounding error. 0 groups: none. */
    int groups;
    int group_nstate;
    const char *group_state_name[DT_CHECKPOINT_STATE];
    float **group_state; /* (groups * group_nstate), group by group; (P) each */
    /* train.overlap: (groups) vectors (P): the change of the weights in the group's last round,
     * which `params` do not contain yet; NULL: nothing is pending */
    float **group_difference;
};
void dt__checkpoint_free(struct dt_checkpoint *checkpoint);
void dt__checkpoint_drop(struct dt_checkpoint *checkpoint); /* frees only the vectors */

/* Writes the file name for a step into `name` and returns it. */
enum { DT_CHECKPOINT_NAME = 32 };
const char *dt__checkpoint_name(uint64_t step, char name[DT_CHECKPOINT_NAME]);

/* Loads a file. Checks every size before allocating from it. DT_EIO. DT_EFORMAT: it is not a
 * checkpoint, its checksum is wrong, or its contents are invalid. */
dt_status dt__checkpoint_load(const char *path, struct dt_checkpoint *out);

/* Loads the newest valid checkpoint of DIR and warns about each file that it skips. The order is:
 * the checkpoint that latest.h5 names; older ones, newest first; then those of later steps, which
 * an abandoned branch has left.
 *
 * *out_found is false if there is no checkpoint at all. DT_EFORMAT: there are checkpoints, but none
 * is valid. */
dt_status dt__checkpoint_load_newest(const char *dir, struct dt_checkpoint *out, char **out_path,
                                     bool *out_found);
/* Returns the step of the newest checkpoint by its name, without verifying the file; false if there
 * is none. Files under temporary names do not count. The evaluator polls it. */
bool dt__checkpoint_newest(const char *dir, uint64_t *out_step);

/* ---- writer thread -------------------------------------------------------------------------- */

/* Saves in the background. dt__writer_start copies the checkpoint, so a training step waits only
 * for one memcpy. A thread writes DIR/step-%09llu.h5 durably, reads it back to verify the checksum,
 * points DIR/latest.h5 to it, and removes the oldest files. */
struct dt_writer;

/* Paths and limits of a writer. The paths are borrowed until the writer is destroyed. */
struct dt_writer_spec {
    const char *dir;                   /* directory of checkpoints */
    int64_t keep;                      /* number of checkpoints to keep, at least two; 0: all */
    const char *latest_dir, *best_dir; /* base directories for dt__export_write; NULL: no such
                                        * exports */
    int64_t export_keep;
    /* file of the run's records; NULL: none. It is synced before each checkpoint, because a run
     * that resumes from the checkpoint does not write them again. */
    const char *records;
};
/* Starts the thread. DT_EMEMORY. */
dt_status dt__writer_create(const struct dt_writer_spec *spec, struct dt_writer **out);
void dt__writer_destroy(struct dt_writer *writer); /* waits for a pending save */
bool dt__writer_busy(struct dt_writer *writer);
/* Starts saving a copy of the checkpoint; if a save is pending, waits for it first. If a save has
 * ended and was not polled, its result is lost; but if it failed, this call returns its error and
 * starts no save. */
dt_status dt__writer_start(struct dt_writer *writer, const struct dt_checkpoint *checkpoint);
/* Exports the model of a checkpoint, the best so far, below best_dir. The call only copies the
 * model and replaces an earlier one that is not exported yet. The thread exports it between saves
 * when it has time, or with the next save; if that export fails, the save stores the weights in the
 * checkpoint (best_params), and the export is tried again. May be called while a save is
 * pending. */
dt_status dt__writer_best(struct dt_writer *writer, const struct dt_checkpoint *checkpoint);
/* The result of a save. */
struct dt_saved {
    dt_status status;
    uint64_t step;
    const char *file; /* name of the file, valid until the next save starts; NULL: the save
                       * failed */
    double secs;      /* seconds from the start of packing until latest.h5 names the verified
                       * file */
    /* Status of the exports with this save. The text is valid until the next save starts. */
    dt_status exported;
    uint64_t export_step; /* step of the export that failed; for the best model it may be earlier */
    const char *export_error;
};
/* Returns true and sets *out if a save has ended since the last call. If the save failed, its error
 * becomes the calling thread's. `wait`: waits for a pending save. */
bool dt__writer_poll(struct dt_writer *writer, bool wait, struct dt_saved *out);
/* Protects a file, which is being evaluated, from retention; NULL: none. The previously protected
 * file is removed soon, at the latest when the writer is destroyed, if it is not among the newest
 * ones that are kept. Thread-safe. */
void dt__writer_protect(struct dt_writer *writer, const char *file);

/* ---- lock ----------------------------------------------------------------------------------- */

/* Takes RUN_DIR/lock (flock) until dt__lock_drop or the end of the process. The file's text, with
 * pid and host, is for messages; a stale file does not block. DT_EIO: another process holds the
 * lock. */
dt_status dt__lock_take(const char *run_dir, int *out_fd);
void dt__lock_drop(int fd);
/* Returns the lock file's description of the holder, such as "pid 123 on node7"; "" if there is
 * none. Two processes that read the same text see the same run directory. */
enum { DT_LOCK_HOLDER = 128 };
const char *dt__lock_holder(const char *run_dir, char holder[DT_LOCK_HOLDER]);
/* Checks on `host` that the lock in the run directory has this `holder`, which another rank read on
 * `holder_host`. DT_EIO: it does not, so the two hosts do not share the directory. */
dt_status dt__lock_seen(const char *run_dir, const char *holder, const char *host,
                        const char *holder_host);

/* ---- exports -------------------------------------------------------------------------------- */

/* Writes the model of a checkpoint as BASE/<step>/model.h5 (BASE is RUN_DIR/export/latest or
 * .../best). The version appears whole or not at all: its directory is made under a temporary name,
 * synced and renamed. It replaces an existing version of the same step. Of the older versions only
 * the newest keep - 1 stay (keep 0: all). Versions of later steps, which an abandoned branch left,
 * are removed, so that this version is the highest. */
dt_status dt__export_write(const char *base, const struct dt_checkpoint *model, int64_t keep);

/* Finds the model that a path given by a user means. A path to a file means this file. A directory
 * means the first of these that exists:
 *
 *   export/best/N/model.h5, the highest N   a run's best model; skipped if `best` is false
 *   model.h5                                a version's directory
 *   N/model.h5, the highest N               a directory of versions
 *   the newest checkpoint in ckpt           a run
 *   the newest checkpoint in it             a directory of checkpoints
 *
 * *out_file becomes the file. *out_ckpt (may be NULL) becomes the directory of checkpoints if a
 * directory led to a checkpoint, so that the caller can load an older one if this one is damaged;
 * else NULL. The caller frees both.
 *
 * DT_EIO: the directory has none of these, or cannot be listed. */
dt_status dt__model_find(const char *path, bool best, char **out_file, char **out_ckpt);
/* Loads the model that dt__model_find finds. If that is a checkpoint of a directory, it loads the
 * newest valid one. *out_path: the file that was loaded. DT_EIO: there is none, or it cannot be
 * read. DT_EFORMAT: it is damaged or not a model. DT_EMEMORY. */
dt_status dt__export_load(const char *path, bool best, struct dt_checkpoint *out, char **out_path);
/* Reads `best` from the highest valid version below BASE; out->known is false if there is none.
 * Warns about each version that it skips. */
dt_status dt__export_best(const char *base, struct dt_best *out);
/* Returns true if a version below BASE has a model. */
bool dt__export_exists(const char *base);

/* ---- inspect -------------------------------------------------------------------------------- */

/* Prints the contents of a checkpoint, a model or a shard: layers, optimizer, step, checksum,
 * ... */
dt_status dt__inspect(const char *path, FILE *out);

#endif
