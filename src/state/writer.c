/* The writer: a thread that writes copies of the training state to files.
 *
 * A save writes a checkpoint and the export of the latest model. The caller makes the copy, the
 * thread writes it:
 *
 *   IDLE -- dt__writer_start --> BUSY -- writer_save --> ENDED -- dt__writer_poll --> IDLE
 *
 * The best model so far comes separately:
 *
 *   dt__writer_best --> next_best  -- writer_export_best --> best       --> its file
 *                      best_waits                           best_held
 *
 * In both snapshots a better model replaces one that is not exported yet. The thread exports
 * between saves when it has time (writer_catch_up). Each save exports the best model first; if that
 * fails, the checkpoint that names this model also stores its weights. So the best model that a
 * checkpoint names is in a file, with one exception: if a better one was found before the save
 * began, that one is exported, or its weights are stored in the next checkpoint. */
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "state/directory.h"

/* Exports of best models between saves take at most the fraction BEST_PART of the time, because a
 * small run may find a better model at each evaluation; but the thread pauses for at most
 * BEST_REST_MOST seconds after one. */
static const double BEST_PART = 0.02, BEST_REST_MOST = 60;

/* ---- snapshots ------------------------------------------------------------------------------ */

/* A copy of a checkpoint. The memory that its pointers point to is in blocks, one for each pointer
 * in the order of copying; the next copy reuses them. */
struct snapshot {
    const char *near_path;           /* for dt__alloc_backed of the blocks */
    struct dt_checkpoint checkpoint; /* its schema is a deep copy */
    struct block {
        void *bytes;
        size_t capacity;
    } * block;
    size_t blocks, used; /* number of allocated blocks; number that this copy uses */
};

/* Replaces the pointer at `pointer`, unless it is NULL, by a pointer to a copy of its `bytes` bytes
 * in the next block. */
static dt_status snapshot_copy(struct snapshot *snapshot, void *pointer, size_t bytes)
{
    void *from;
    DT_TRY(dt__grow(&snapshot->block, &snapshot->blocks, snapshot->used + 1,
                    sizeof *snapshot->block, "a snapshot"));
    struct block *block = &snapshot->block[snapshot->used++];
    memcpy(&from, pointer, sizeof from);
    if (!from) return DT_OK;
    if (block->capacity < bytes + 1) { /* at least 1 byte, so that the copy is not NULL */
        dt__free_backed(block->bytes);
        *block = (struct block){NULL, 0};
        DT_TRY(dt__alloc_backed(snapshot->near_path, bytes + 1, 1, "a snapshot", &block->bytes));
        block->capacity = bytes + 1;
    }
    memcpy(block->bytes, from, bytes);
    memcpy(pointer, &block->bytes, sizeof block->bytes);
    return DT_OK;
}

/* Copies `from`. Allocates memory only for the first copy and when something has grown. model:
 * reads and copies only the members of a model. */
static dt_status snapshot_take(struct snapshot *snapshot, const struct dt_checkpoint *from,
                               bool model)
{
    struct dt_checkpoint *to = &snapshot->checkpoint;
    const size_t params = (size_t)from->params_count, groups = (size_t)from->groups;
    struct dt__vector vector;
    dt__schema_free(&to->schema);
    *to = *from;
    to->schema = (struct dt_schema){0};
    to->best_params = NULL;
    for (int i = 0; i < DT_CHECKPOINT_STATE; i++) {
        if (i >= to->nstate) to->state_name[i] = NULL;
        if (i >= to->group_nstate) to->group_state_name[i] = NULL;
    }
    snapshot->used = 0;
    DT_TRY(dt__schema_copy(&from->schema, &to->schema));
    for (int t = DT__MODEL_RECORDS; t < (model ? DT__RESUME_RECORDS : DT__RECORD_TABLES); t++)
        for (const struct dt__record *record = dt__records[t]; record->path; record++)
            if (record->pointer)
                DT_TRY(snapshot_copy(snapshot, (char *)to + record->member,
                                     dt__record_bytes(record, to)));
    if (model) return snapshot_copy(snapshot, &to->params, params * sizeof(float));
    DT_TRY(snapshot_copy(snapshot, &to->group_state,
                         groups * (size_t)to->group_nstate * sizeof *to->group_state));
    DT_TRY(snapshot_copy(snapshot, &to->group_difference, groups * sizeof *to->group_difference));
    for (int i = 0; dt__vector_at(to, i, &vector); i++)
        if (vector.at) DT_TRY(snapshot_copy(snapshot, vector.at, params * sizeof(float)));
    return DT_OK;
}

static void snapshot_free(struct snapshot *snapshot)
{
    dt__schema_free(&snapshot->checkpoint.schema);
    for (size_t i = 0; i < snapshot->blocks; i++)
        dt__free_backed(snapshot->block[i].bytes);
    dt_free(snapshot->block);
}

/* ---- the writer ----------------------------------------------------------------------------- */

enum phase { IDLE, BUSY, ENDED, QUIT };

/* The thread owns snapshot and saved in the phase BUSY; the caller owns them in other phases. */
struct dt_writer {
    struct dt_writer_spec spec;
    pthread_t thread;
    pthread_mutex_t lock; /* protects phase, tidy, best_waits and next_best */
    pthread_cond_t changed;
    enum phase phase;
    bool tidy;       /* a file is no longer protected: run the retention again */
    bool best_waits; /* next_best is not in `best` yet */

    struct snapshot snapshot;
    struct snapshot next_best; /* the caller fills it and the thread swaps it, both while holding
                                * the lock */
    struct dt_saved saved;
    char file[DT_CHECKPOINT_NAME];
    char error[DT_ERROR_MAX], export_error[DT_ERROR_MAX];

    /* Only the thread uses the following members. */
    struct snapshot best;
    bool best_held;         /* `best` is not exported yet */
    double best_rest;       /* clock before which the best model is exported only by a save */
    uint64_t best_reported; /* 1 + the step of the last failed export that was reported */

    pthread_mutex_t protected_lock; /* held during retention, so that the protected file stays */
    char protected[DT_CHECKPOINT_NAME];
};

/* ---- phases --------------------------------------------------------------------------------- */

static void writer_set_phase(struct dt_writer *writer, enum phase phase)
{
    pthread_mutex_lock(&writer->lock);
    writer->phase = phase;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
}

/* Returns the phase, for the caller. wait: first sleeps until no save is pending. */
static enum phase writer_phase(struct dt_writer *writer, bool wait)
{
    pthread_mutex_lock(&writer->lock);
    while (wait && writer->phase == BUSY)
        pthread_cond_wait(&writer->changed, &writer->lock);
    enum phase phase = writer->phase;
    pthread_mutex_unlock(&writer->lock);
    return phase;
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void writer_retain(struct dt_writer *writer)
{
    pthread_mutex_lock(&writer->protected_lock);
    if (dt__checkpoint_retain(writer->spec.dir, writer->spec.keep, writer->protected))
        dt__warn("%s", dt_error_text());
    pthread_mutex_unlock(&writer->protected_lock);
}

/* Exports the best model if it is not exported yet. Takes it from next_best if a better one waits
 * there. */
static dt_status writer_export_best(struct dt_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    if (writer->best_waits) {
        struct snapshot older = writer->best;
        writer->best = writer->next_best;
        writer->next_best = older;
        writer->best_waits = false;
        writer->best_held = true;
    }
    pthread_mutex_unlock(&writer->lock);
    if (!writer->best_held) return DT_OK;
    double start = dt__clock_secs();
    dt_status status =
        dt__export_write(writer->spec.best_dir, &writer->best.checkpoint, writer->spec.export_keep);
    double end = dt__clock_secs(), rest = (end - start) / BEST_PART;
    writer->best_rest = end + (rest < BEST_REST_MOST && !status ? rest : BEST_REST_MOST);
    writer->best_held = status != DT_OK;
    return status;
}

static dt_status keep_error(dt_status status, char error[DT_ERROR_MAX])
{
    if (status) snprintf(error, DT_ERROR_MAX, "%s", dt_error_text());
    return status;
}

/* Writes, in this order: the run's records; the best model; the checkpoint, with the weights of the
 * best model if it could not be exported; the latest export. Retention removes old checkpoints
 * before the latest export. */
static void writer_save(struct dt_writer *writer)
{
    struct dt_checkpoint *checkpoint = &writer->snapshot.checkpoint;
    const struct dt_checkpoint *best = &writer->best.checkpoint;
    struct dt_saved saved = {.step = checkpoint->step, .export_error = writer->export_error};
    if (writer->spec.records && dt__path_sync(writer->spec.records))
        dt__warn("%s", dt_error_text());
    saved.exported = keep_error(writer_export_best(writer), writer->export_error);
    saved.export_step = best->step;
    bool unexported =
        writer->best_held && checkpoint->best.known && checkpoint->best.step == best->step;
    checkpoint->best_params = unexported ? best->params : NULL;
    double start = dt__clock_secs();
    saved.status = keep_error(dt__checkpoint_save(writer->spec.dir, checkpoint), writer->error);
    saved.secs = dt__clock_secs() - start;
    if (!saved.status) saved.file = dt__checkpoint_name(saved.step, writer->file);
    checkpoint->best_params = NULL;
    if (!saved.status) writer_retain(writer);
    if (!saved.status && writer->spec.latest_dir) {
        checkpoint->best = (struct dt_best){0};
        dt_status latest =
            dt__export_write(writer->spec.latest_dir, checkpoint, writer->spec.export_keep);
        if (latest && !saved.exported) { /* if both exports fail, the best model's failure is
                                          * reported */
            saved.exported = keep_error(latest, writer->export_error);
            saved.export_step = saved.step;
        }
    }
    writer->saved = saved;
    writer_set_phase(writer, ENDED);
}

/* Exports the best model between saves. Warns at most once about each model. */
static void writer_catch_up(struct dt_writer *writer)
{
    const uint64_t reported = writer->best_reported;
    if (!writer_export_best(writer)) return;
    writer->best_reported = 1 + writer->best.checkpoint.step;
    if (writer->best_reported != reported)
        dt__warn(
            "export of the best model, of step %llu: %s; tried again within a minute, and with "
            "the next save",
            (unsigned long long)writer->best.checkpoint.step, dt_error_text());
}

/* The thread: saves come first, then retention, then exports of the best model. Only this thread
 * removes files, so never after a new file is renamed but before latest.h5 points to it. */
static void *writer_run(void *arg)
{
    struct dt_writer *writer = arg;
    pthread_mutex_lock(&writer->lock);
    for (;;) {
        const bool waits = writer->best_waits || writer->best_held;
        const double until = writer->best_rest;
        const struct timespec at = {(time_t)until, (long)((until - floor(until)) * 1e9)};
        void (*work)(struct dt_writer *) = NULL;
        if (writer->phase == BUSY) {
            work = writer_save;
        } else if (writer->tidy) {
            writer->tidy = false;
            work = writer_retain;
        } else if (waits && dt__clock_secs() >= until) {
            work = writer_catch_up;
        } else if (writer->phase == QUIT) {
            break;
        } else if (waits) {
            pthread_cond_clockwait(&writer->changed, &writer->lock, CLOCK_MONOTONIC, &at);
        } else {
            pthread_cond_wait(&writer->changed, &writer->lock);
        }
        if (!work) continue;
        pthread_mutex_unlock(&writer->lock);
        work(writer);
        pthread_mutex_lock(&writer->lock);
    }
    pthread_mutex_unlock(&writer->lock);
    writer_catch_up(writer); /* a last attempt before the thread ends */
    return NULL;
}

/* ---- the caller ----------------------------------------------------------------------------- */

static void writer_free(struct dt_writer *writer)
{
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
    pthread_mutex_destroy(&writer->protected_lock);
    snapshot_free(&writer->snapshot);
    snapshot_free(&writer->next_best);
    snapshot_free(&writer->best);
    dt_free(writer);
}

dt_status dt__writer_create(const struct dt_writer_spec *spec, struct dt_writer **out)
{
    struct dt_writer *writer;
    DT_TRY(dt__alloc(1, sizeof *writer, "a checkpoint writer", &writer));
    writer->spec = *spec;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_mutex_init(&writer->protected_lock, NULL);
    pthread_cond_init(&writer->changed, NULL);
    writer->snapshot.near_path = writer->next_best.near_path = writer->best.near_path = spec->dir;
    dt_status status = dt__thread_start(&writer->thread, "checkpoints", writer_run, writer);
    if (status)
        writer_free(writer);
    else
        *out = writer;
    return status;
}

void dt__writer_destroy(struct dt_writer *writer)
{
    if (!writer) return;
    writer_phase(writer, true);
    writer_set_phase(writer, QUIT);
    pthread_join(writer->thread, NULL);
    writer_free(writer);
}

bool dt__writer_busy(struct dt_writer *writer)
{
    return writer_phase(writer, false) == BUSY;
}

dt_status dt__writer_start(struct dt_writer *writer, const struct dt_checkpoint *checkpoint)
{
    struct dt_saved saved;
    if (dt__writer_poll(writer, true, &saved) && saved.status) return saved.status;
    DT_TRY(snapshot_take(&writer->snapshot, checkpoint, false));
    writer_set_phase(writer, BUSY);
    return DT_OK;
}

dt_status dt__writer_best(struct dt_writer *writer, const struct dt_checkpoint *checkpoint)
{
    if (!writer->spec.best_dir) return DT_OK;
    pthread_mutex_lock(&writer->lock);
    dt_status status = snapshot_take(&writer->next_best, checkpoint, true);
    writer->best_waits = !status;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    return status;
}

bool dt__writer_poll(struct dt_writer *writer, bool wait, struct dt_saved *out)
{
    if (writer_phase(writer, wait) != ENDED) return false;
    *out = writer->saved;
    if (out->status) dt_fail(out->status, "%s", writer->error);
    writer_set_phase(writer, IDLE);
    return true;
}

void dt__writer_protect(struct dt_writer *writer, const char *file)
{
    pthread_mutex_lock(&writer->protected_lock);
    const bool had_file = *writer->protected;
    snprintf(writer->protected, sizeof writer->protected, "%s", file ? file : "");
    pthread_mutex_unlock(&writer->protected_lock);
    if (!had_file) return;
    pthread_mutex_lock(&writer->lock);
    writer->tidy = true;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
}
