/* The writer: a thread that turns copies of the training state into files.
 *
 * A save is a checkpoint and the export of the latest model. The best model so far comes apart from
 * saves: its weights are copied when it is found, the copy is exported as the thread finds time, and a
 * better one takes the place of a copy that still waits. Each save begins with the best that is not
 * exported yet; if it cannot be, its weights go into the checkpoint: a checkpoint never names a best
 * model that is in no file. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "state/directory.h"

/* Of the time between saves, the export of best models takes this part at most: a small run may find
 * a better model at each of its evaluations. */
static const double BEST_PART = 0.02, BEST_REST_MOST = 60;

/* ---- snapshots ------------------------------------------------------------------------------ */

/* A copy of a checkpoint in memory that is used again for the next one. */
struct snapshot {
    struct dt_checkpoint checkpoint; /* all of it our own */
    size_t params_room, state_room[DT_CHECKPOINT_STATE], draws_room,
        sums_room;      /* items allocated */
    size_t *group_room; /* (group_vectors) likewise */
    int group_vectors;  /* groups * group_nstate, as allocated */
    float **difference; /* (differences) our own too, if the last copy has none as well */
    size_t *difference_room;
    int differences;
};

/* Copies n items into *to, which has room for *room of them. */
static dt_status copy(void *to, size_t *room, const void *from, size_t n, size_t size)
{
    void *at;
    DT_TRY(dt_grow(to, room, n, size, "a snapshot"));
    memcpy(&at, to, sizeof at);
    memcpy(at, from, n * size);
    return DT_OK;
}

/* The text, or NULL, in place of the one before. */
static dt_status copy_text(char **to, const char *from)
{
    dt_free(*to);
    *to = NULL;
    return from ? dt_strdup(from, to) : DT_OK;
}

static dt_status copy_words(struct dt_checkpoint *to, const struct dt_checkpoint *from)
{
    DT_TRY(copy_text(&to->config, from->config));
    DT_TRY(copy_text(&to->kernel, from->kernel));
    DT_TRY(copy_text(&to->history, from->history));
    DT_TRY(copy_text(&to->desc.layers, from->desc.layers));
    for (int i = 0; i < DT_CHECKPOINT_STATE; i++)
        DT_TRY(copy_text((char **)(uintptr_t)&to->state_name[i],
                         i < to->nstate ? from->state_name[i] : NULL));
    for (int i = 0; i < DT_CHECKPOINT_STATE; i++)
        DT_TRY(copy_text((char **)(uintptr_t)&to->group_state_name[i],
                         i < to->group_nstate ? from->group_state_name[i] : NULL));
    dt_schema_free(&to->schema);
    return dt_schema_copy(&from->schema, &to->schema);
}

static dt_status snapshot_take_groups(struct snapshot *snapshot, const struct dt_checkpoint *from)
{
    struct dt_checkpoint *to = &snapshot->checkpoint;
    size_t params = (size_t)from->params_count;
    int vectors = from->groups * from->group_nstate;
    if (vectors != snapshot->group_vectors) { /* a wire's first, then those of local steps */
        for (int i = 0; i < snapshot->group_vectors; i++)
            dt_free(to->group_state[i]);
        dt_free(to->group_state);
        dt_free(snapshot->group_room);
        to->group_state = NULL;
        snapshot->group_room = NULL;
        snapshot->group_vectors = 0;
    }
    if (vectors == 0) return DT_OK;
    if (!to->group_state) {
        to->groups = 0; /* as yet */
        DT_TRY(dt_alloc((size_t)vectors, sizeof *to->group_state, "a snapshot", &to->group_state));
        DT_TRY(dt_alloc((size_t)vectors, sizeof(size_t), "a snapshot", &snapshot->group_room));
        to->groups = from->groups;
        snapshot->group_vectors = vectors;
    }
    for (int i = 0; i < vectors; i++)
        DT_TRY(copy(&to->group_state[i], &snapshot->group_room[i], from->group_state[i], params,
                    sizeof(float)));
    return DT_OK;
}

static dt_status snapshot_take_differences(struct snapshot *snapshot,
                                           const struct dt_checkpoint *from)
{
    const size_t groups = (size_t)from->groups;
    if (!from->group_difference) return DT_OK;
    /* Groups stay as many for as long as the program runs. */
    if (!snapshot->difference_room)
        DT_TRY(dt_alloc(groups, sizeof(size_t), "a snapshot", &snapshot->difference_room));
    if (!snapshot->difference)
        DT_TRY(dt_alloc(groups, sizeof(float *), "a snapshot", &snapshot->difference));
    snapshot->differences = from->groups;
    for (int g = 0; g < from->groups; g++)
        DT_TRY(copy(&snapshot->difference[g], &snapshot->difference_room[g],
                    from->group_difference[g], (size_t)from->params_count, sizeof(float)));
    snapshot->checkpoint.group_difference = snapshot->difference;
    return DT_OK;
}

/* Copies `from`; memory is allocated at the first copy, and when something has grown. model: only what an
 * export needs. */
static dt_status snapshot_take(struct snapshot *snapshot, const struct dt_checkpoint *from,
                               bool model)
{
    struct dt_checkpoint *to = &snapshot->checkpoint, own = *to;
    size_t params = (size_t)from->params_count, replicas = model ? 0 : (size_t)from->replicas;
    *to = *from; /* the numbers; what is pointed to is our own */
    to->nstate = model ? 0 : from->nstate;
    to->draws = own.draws;
    to->loss_sums = own.loss_sums;
    to->config = own.config;
    to->kernel = own.kernel;
    to->history = own.history;
    to->desc.layers = own.desc.layers;
    to->schema = own.schema;
    to->params = own.params;
    to->best_params = NULL;
    memcpy(to->state_name, own.state_name, sizeof to->state_name);
    memcpy(to->state, own.state, sizeof to->state);
    memcpy(to->group_state_name, own.group_state_name, sizeof to->group_state_name);
    to->group_state = own.group_state;
    to->group_difference = NULL;
    to->groups = model ? 0 : from->groups;
    to->group_nstate = model ? 0 : from->group_nstate;
    DT_TRY(copy_words(to, from));
    DT_TRY(copy(&to->params, &snapshot->params_room, from->params, params, sizeof *to->params));
    for (int i = 0; i < to->nstate; i++)
        DT_TRY(copy(&to->state[i], &snapshot->state_room[i], from->state[i], params,
                    sizeof *to->params));
    if (replicas == 0) return DT_OK;
    DT_TRY(snapshot_take_groups(snapshot, from));
    DT_TRY(snapshot_take_differences(snapshot, from));
    DT_TRY(copy(&to->draws, &snapshot->draws_room, from->draws, replicas, sizeof *to->draws));
    return copy(&to->loss_sums, &snapshot->sums_room, from->loss_sums, replicas,
                sizeof *to->loss_sums);
}

static void snapshot_free(struct snapshot *snapshot)
{
    snapshot->checkpoint.group_difference = NULL;
    dt_checkpoint_free(&snapshot->checkpoint);
    dt_free(snapshot->group_room);
    for (int g = 0; g < snapshot->differences; g++)
        dt_free(snapshot->difference[g]);
    dt_free(snapshot->difference);
    dt_free(snapshot->difference_room);
    *snapshot = (struct snapshot){0};
}

/* ---- the writer ----------------------------------------------------------------------------- */

enum phase { IDLE, BUSY, ENDED, QUIT };

/* While the phase is BUSY the thread owns snapshot and saved; else the caller does. */
struct dt_writer {
    char *dir, *latest_dir, *best_dir; /* the exports': NULL for none */
    int64_t keep, export_keep;

    pthread_t thread;
    pthread_mutex_t lock; /* of phase, tidy, best_waits and next_best */
    pthread_cond_t changed;
    enum phase phase;
    bool tidy;       /* a file that was protected may go now */
    bool best_waits; /* next_best is to be exported */

    struct snapshot snapshot, next_best;
    struct dt_saved saved;
    char *file;
    char error[DT_ERROR_MAX], export_error[DT_ERROR_MAX];

    /* The thread's alone. */
    struct snapshot best;
    bool best_held;     /* `best` is not exported yet */
    double best_rest;   /* clock before which no best is exported but by a save */
    uint64_t best_told; /* 1 + the step whose failed export has been told */

    pthread_mutex_t protected_lock; /* held through retention: what is protected stays */
    char *protected;
};

/* ---- phases --------------------------------------------------------------------------------- */

static void writer_set_phase(struct dt_writer *writer, enum phase phase)
{
    pthread_mutex_lock(&writer->lock);
    writer->phase = phase;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
}

/* For the caller. wait: sleeps until no save is under way. */
static enum phase writer_phase(struct dt_writer *writer, bool wait)
{
    pthread_mutex_lock(&writer->lock);
    while (wait && writer->phase == BUSY)
        pthread_cond_wait(&writer->changed, &writer->lock);
    enum phase phase = writer->phase;
    pthread_mutex_unlock(&writer->lock);
    return phase;
}

/* Sleeps until something changes, or the clock has reached `until` (0: no matter when). */
static void writer_sleep(struct dt_writer *writer, double until)
{
    struct timespec at;
    if (until <= 0) {
        pthread_cond_wait(&writer->changed, &writer->lock);
        return;
    }
    double rest = until - dt_clock_secs();
    if (rest <= 0) return;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)rest;
    at.tv_nsec += (long)((rest - (double)(time_t)rest) * 1e9);
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    pthread_cond_timedwait(&writer->changed, &writer->lock, &at);
}

struct work {
    enum phase phase;
    bool tidy, best;
};

/* For the thread: sleeps until there is something to do. A save comes before all else. */
static struct work writer_await_work(struct dt_writer *writer)
{
    struct work work;
    pthread_mutex_lock(&writer->lock);
    for (;;) {
        bool waits = writer->best_waits || writer->best_held;
        bool idle = writer->phase == IDLE || writer->phase == ENDED;
        work = (struct work){writer->phase, writer->tidy,
                             waits && dt_clock_secs() >= writer->best_rest};
        if (!idle || work.tidy || work.best) break;
        writer_sleep(writer, waits ? writer->best_rest : 0);
    }
    if (work.phase == BUSY)
        work.tidy = work.best = false;
    else
        writer->tidy = false;
    pthread_mutex_unlock(&writer->lock);
    return work;
}

/* ---- the thread ----------------------------------------------------------------------------- */

static dt_status writer_retain(struct dt_writer *writer)
{
    pthread_mutex_lock(&writer->protected_lock);
    dt_status status = dt__checkpoint_retain(writer->dir, writer->keep, writer->protected);
    pthread_mutex_unlock(&writer->protected_lock);
    return status;
}

/* Exports the newest copy of a best model, if one is not exported yet. */
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
    double start = dt_clock_secs();
    struct dt_export model = dt_export_of(&writer->best.checkpoint);
    dt_status status = dt_export_write(writer->best_dir, &model, writer->export_keep);
    double end = dt_clock_secs(), rest = (end - start) / BEST_PART;
    writer->best_rest = end + (rest < BEST_REST_MOST && !status ? rest : BEST_REST_MOST);
    writer->best_held = status != DT_OK;
    return status;
}

static dt_status keep_error(dt_status status, char error[DT_ERROR_MAX])
{
    if (status) snprintf(error, DT_ERROR_MAX, "%s", dt_error_text());
    return status;
}

/* The best that waits, the checkpoint, with the weights of a best that could not be exported, what goes
 * by retention, and the latest. */
static void writer_save(struct dt_writer *writer)
{
    struct dt_checkpoint *checkpoint = &writer->snapshot.checkpoint;
    const struct dt_checkpoint *best = &writer->best.checkpoint;
    struct dt_saved saved = {.step = checkpoint->step, .export_error = writer->export_error};
    saved.exported = keep_error(writer_export_best(writer), writer->export_error);
    saved.export_step = best->step;
    bool alone = writer->best_held && checkpoint->best.known && checkpoint->best.step == best->step;
    checkpoint->best_params = alone ? best->params : NULL;
    double start = dt_clock_secs();
    saved.status =
        keep_error(dt__checkpoint_save(writer->dir, checkpoint, &writer->file), writer->error);
    saved.secs = dt_clock_secs() - start;
    saved.file = writer->file;
    checkpoint->best_params = NULL;
    if (!saved.status && writer_retain(writer)) dt_warn("%s", dt_error_text());
    if (!saved.status && writer->latest_dir) {
        struct dt_export model = dt_export_of(checkpoint);
        model.best = (struct dt_best){0};
        dt_status latest = dt_export_write(writer->latest_dir, &model, writer->export_keep);
        if (latest && !saved.exported) { /* of two that fail the best's is told */
            saved.exported = keep_error(latest, writer->export_error);
            saved.export_step = saved.step;
        }
    }
    writer->saved = saved;
}

/* Only this thread removes files: never between a new file and its latest.h5. */
static void *writer_run(void *arg)
{
    struct dt_writer *writer = arg;
    struct work work;
    do {
        work = writer_await_work(writer);
        if (work.tidy && writer_retain(writer)) dt_warn("%s", dt_error_text());
        uint64_t told = writer->best_told;
        if (work.best && writer_export_best(writer)) {
            writer->best_told = 1 + writer->best.checkpoint.step;
            if (writer->best_told != told)
                dt_warn(
                    "export of the best model, of step %llu: %s; tried again with the next save",
                    (unsigned long long)writer->best.checkpoint.step, dt_error_text());
        }
        if (work.phase != BUSY) continue;
        writer_save(writer);
        writer_set_phase(writer, ENDED);
    } while (work.phase != QUIT);
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
    dt_free(writer->file);
    dt_free(writer->protected);
    dt_free(writer->dir);
    dt_free(writer->latest_dir);
    dt_free(writer->best_dir);
    dt_free(writer);
}

dt_status dt_writer_create(const struct dt_writer_spec *spec, struct dt_writer **out)
{
    struct dt_writer *writer;
    pthread_condattr_t monotonic;
    DT_TRY(dt_alloc(1, sizeof *writer, "a checkpoint writer", &writer));
    writer->keep = spec->keep;
    writer->export_keep = spec->export_keep;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_mutex_init(&writer->protected_lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&writer->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    dt_status status = dt_strdup(spec->dir, &writer->dir);
    if (!status && spec->latest_dir) status = dt_strdup(spec->latest_dir, &writer->latest_dir);
    if (!status && spec->best_dir) status = dt_strdup(spec->best_dir, &writer->best_dir);
    if (!status) status = dt_thread_start(&writer->thread, "checkpoints", writer_run, writer);
    if (status)
        writer_free(writer);
    else
        *out = writer;
    return status;
}

void dt_writer_destroy(struct dt_writer *writer)
{
    if (!writer) return;
    writer_phase(writer, true);
    writer_set_phase(writer, QUIT);
    pthread_join(writer->thread, NULL);
    writer_free(writer);
}

bool dt_writer_busy(struct dt_writer *writer)
{
    return writer_phase(writer, false) == BUSY;
}

dt_status dt_writer_start(struct dt_writer *writer, const struct dt_checkpoint *checkpoint)
{
    struct dt_saved saved;
    if (dt_writer_poll(writer, true, &saved) && saved.status) return saved.status;
    dt_free(writer->file);
    writer->file = NULL;
    DT_TRY(snapshot_take(&writer->snapshot, checkpoint, false));
    writer_set_phase(writer, BUSY);
    return DT_OK;
}

dt_status dt_writer_best(struct dt_writer *writer, const struct dt_checkpoint *checkpoint)
{
    if (!writer->best_dir) return DT_OK;
    pthread_mutex_lock(&writer->lock);
    dt_status status = snapshot_take(&writer->next_best, checkpoint, true);
    writer->best_waits = !status;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
    return status;
}

bool dt_writer_poll(struct dt_writer *writer, bool wait, struct dt_saved *out)
{
    if (writer_phase(writer, wait) != ENDED) return false;
    *out = writer->saved;
    if (out->status) dt_fail(out->status, "%s", writer->error);
    writer_set_phase(writer, IDLE);
    return true;
}

void dt_writer_protect(struct dt_writer *writer, const char *file)
{
    char *copy = NULL;
    if (file && dt_strdup(file, &copy)) dt_warn("%s is not protected: %s", file, dt_error_text());
    pthread_mutex_lock(&writer->protected_lock);
    char *old = writer->protected;
    writer->protected = copy;
    pthread_mutex_unlock(&writer->protected_lock);
    if (old) {
        pthread_mutex_lock(&writer->lock);
        writer->tidy = true;
        pthread_cond_broadcast(&writer->changed);
        pthread_mutex_unlock(&writer->lock);
    }
    dt_free(old);
}
