/* state: checkpoints and exported models, as HDF5 files that are complete or absent.
 *
 * A file is 512 bytes of user block ("dtrain checkpoint 1 crc32c=xxxxxxxx bytes=N\n", padded) and an
 * HDF5 image; the CRC-32C covers the image. It is built in memory and written by dt_file_write. */
#ifndef DTRAIN_STATE_H
#define DTRAIN_STATE_H

#include "dtrain/base.h"
#include "dtrain/config.h"
#include "dtrain/data.h"
#include "dtrain/model.h"

/* The best evaluation so far and the state of early stopping. */
struct dt_best {
    bool known;
    double value; /* of `metric` */
    char metric[16];
    uint64_t step; /* of the best */
    int64_t since; /* evaluations since the best */
    uint64_t seen; /* 1 + the step of the last evaluation; 0: none yet */
    bool stop;     /* early stopping has been decided */
};

/* All that a resume needs. Pointers are the owner's: a caller of save lends them, dt_checkpoint_load
 * makes them and dt_checkpoint_free frees them. */
struct dt_checkpoint {
    uint64_t step;
    int mode; /* enum dt_mode as run (staleness 0 is sync) */
    uint64_t seed;
    int replicas;
    uint64_t samples;  /* samples trained, over resumes */
    double wall_secs;  /* over resumes */
    double train_secs; /* training time alone, over resumes */
    uint64_t *draws;   /* (replicas) draws that each replica has done; sync: step */
    double *loss_sums; /* (replicas) of the open log window, so that records repeat */
    double loss_rows;
    struct dt_best best;
    char *config;      /* dt_config_print */
    char *kernel;      /* of matrix products */
    uint32_t data_crc; /* dt_source_crc of the training data */
    struct dt_model_spec spec;
    struct dt_schema schema;
    uint64_t params_count; /* P */
    float *params;         /* (P) */
    int nstate;
    const char *state_name[DT_MAX_STATE]; /* as struct dt_optimizer has them */
    float *state[DT_MAX_STATE];           /* (P) each */
};
void dt_checkpoint_free(struct dt_checkpoint *checkpoint);

/* Builds the file's bytes (user block and image). Not collective. Caller frees with dt_free. */
dt_status dt_checkpoint_pack(const struct dt_checkpoint *checkpoint, void *out_bytes,
                             size_t *out_length);

/* Writes DIR/step-%09llu.h5 durably, reads it back to verify the checksum, moves DIR/latest.h5, and
 * removes the oldest beyond `keep` (0: all stay; two at least stay; `spare` is never removed, NULL:
 * none). *out_file: base name, caller frees.
 * DT_EIO: disk full and the like; what was there before is intact. */
dt_status dt_checkpoint_save(const char *dir, const struct dt_checkpoint *checkpoint, int64_t keep,
                             const char *spare, char **out_file);

/* Base name of a step's file, into `name`, which is returned. */
enum { DT_CHECKPOINT_NAME = 32 };
const char *dt_checkpoint_name(uint64_t step, char name[DT_CHECKPOINT_NAME]);

/* Loads a file. DT_EIO; DT_EFORMAT: not a checkpoint, checksum, or anything in it that is not as it
 * should be; every size is checked before it is an allocation. */
dt_status dt_checkpoint_load(const char *path, struct dt_checkpoint *out);

/* Loads the newest checkpoint of DIR that verifies (latest.h5 first, then by falling step); warns of
 * each that it passes over. *out_found false: there is none at all. DT_EFORMAT: files, none good. */
dt_status dt_checkpoint_load_latest(const char *dir, struct dt_checkpoint *out, char **out_path,
                                    bool *out_found);
/* Path of the newest checkpoint by name that is a whole file under its final name (no verification),
 * step into *out_step; false if none. For the evaluator's watch. */
bool dt_checkpoint_newest(const char *dir, uint64_t *out_step, char **out_path);

/* ---- writer thread -------------------------------------------------------------------------- */

/* Saves in the background: the snapshot is copied at the call (the step's path pays one memcpy),
 * packed and written by a thread. */
struct dt_writer;

/* What the thread does behind a save that came good (export and such); runs in the thread. */
typedef dt_status dt_writer_then_fn(void *arg, const struct dt_checkpoint *checkpoint);
dt_status dt_writer_create(const char *dir, int64_t keep, dt_writer_then_fn *then, void *arg,
                           struct dt_writer **out);
void dt_writer_destroy(struct dt_writer *writer); /* waits for a save under way */
bool dt_writer_busy(struct dt_writer *writer);
/* Starts a save of a copy of the checkpoint; waits first if one is under way. Poll before: a save
 * that has ended unseen is forgotten, but if it failed its error is returned and nothing starts. */
dt_status dt_writer_start(struct dt_writer *writer, const struct dt_checkpoint *checkpoint);
/* A save that has ended since the last call: true, with its status (the error text becomes the
 * caller's), step, base name (valid until the next call) and seconds. `wait`: waits for one under way. */
struct dt_saved {
    dt_status status;
    uint64_t step;
    const char *file; /* NULL: the save itself failed */
    double secs;      /* from the start of packing until latest.h5 names the verified file */
};
bool dt_writer_poll(struct dt_writer *writer, bool wait, struct dt_saved *out);
/* A file that retention must leave alone (under evaluation); NULL: none. The one before goes
 * soon if it is beyond what is kept, at the latest as the writer is destroyed. Thread-safe. */
void dt_writer_spare(struct dt_writer *writer, const char *file);

/* ---- lock ----------------------------------------------------------------------------------- */

/* Holds RUN_DIR/lock (flock, with host and pid inside for the message) until unlocked or the process
 * ends; a stale file does not block. DT_EIO: another process holds it. */
dt_status dt_lock_take(const char *run_dir, int *out_fd);
void dt_lock_drop(int fd);
/* What the lock file says of its holder: "pid 123 on node7"; "" if it says nothing. Two processes that
 * read the same see the same run directory. */
enum { DT_LOCK_HOLDER = 128 };
const char *dt_lock_holder(const char *run_dir, char holder[DT_LOCK_HOLDER]);

/* ---- exports -------------------------------------------------------------------------------- */

/* What prediction needs and no more. */
struct dt_export {
    uint64_t step;
    struct dt_model_spec spec;
    struct dt_schema schema;
    uint64_t params_count;
    float *params;
    char *config;        /* as in the checkpoint */
    struct dt_best best; /* best.known: the metric it was chosen by (export/best) */
};
void dt_export_free(struct dt_export *model);
/* What an export of the checkpoint holds. It lends the checkpoint's pointers: not to be freed. */
struct dt_export dt_export_of(const struct dt_checkpoint *checkpoint);

/* Writes BASE/<step>/model.h5 (BASE = RUN_DIR/export/latest or .../best): a directory under a
 * temporary name, synced, then renamed: it appears whole or not at all. An existing version of the
 * same step is replaced. Versions beyond `keep` (0: all stay) are removed, oldest first, never this
 * one; so are those of later steps, left by a branch that was given up: this one is the highest. */
dt_status dt_export_write(const char *base, const struct dt_export *model, int64_t keep);

/* Loads a model file, a version directory, its parent (highest N), a checkpoint, or a run directory
 * (its newest good checkpoint). *out_path: the file that it came from. */
dt_status dt_export_load(const char *path, struct dt_export *out, char **out_path);
/* The best metric as the highest good version below BASE records it; known = false if there is none.
 * Warns of a version that it passes over. */
dt_status dt_export_best(const char *base, struct dt_best *out);

/* ---- inspect -------------------------------------------------------------------------------- */

/* Says what a checkpoint, model or shard holds: layers, optimizer, step, checksum. */
dt_status dt_inspect(const char *path, FILE *out);

#endif
