#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "dtrain/state.h"
#include "state/checkpoint.h"
#include "state/folder.h"
#include "state/snapshot.h"

enum phase { IDLE, BUSY, ENDED, QUIT };

/* While the phase is BUSY the thread owns snapshot, image and saved; else the caller does. */
struct dt_writer {
    char *dir;
    int64_t keep;
    dt_writer_then_fn *then;
    void *arg;

    pthread_t thread;
    pthread_mutex_t lock; /* of phase and tidy */
    pthread_cond_t changed;
    enum phase phase;
    bool tidy; /* a file that was spared may go now */

    struct dt__snapshot snapshot;
    struct dt__image image;
    struct dt_saved saved;
    char *file;
    char error[DT_ERROR_MAX];

    pthread_mutex_t spare_lock; /* held through retention: what is spared stays */
    char *spare;
};

/* ---- phases --------------------------------------------------------------------------------- */

static void set_phase(struct dt_writer *writer, enum phase phase)
{
    pthread_mutex_lock(&writer->lock);
    writer->phase = phase;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
}

static enum phase get_phase(struct dt_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    enum phase phase = writer->phase;
    pthread_mutex_unlock(&writer->lock);
    return phase;
}

/* For the thread: sleeps until there is something to do. A save comes before tidying up. */
static enum phase wait_for_work(struct dt_writer *writer, bool *out_tidy)
{
    pthread_mutex_lock(&writer->lock);
    while ((writer->phase == IDLE || writer->phase == ENDED) && !writer->tidy)
        pthread_cond_wait(&writer->changed, &writer->lock);
    enum phase phase = writer->phase;
    *out_tidy = writer->tidy && phase != BUSY;
    if (*out_tidy) writer->tidy = false;
    pthread_mutex_unlock(&writer->lock);
    return phase;
}

/* For the caller: sleeps until no save is under way. */
static enum phase wait_for_end(struct dt_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    while (writer->phase == BUSY)
        pthread_cond_wait(&writer->changed, &writer->lock);
    enum phase phase = writer->phase;
    pthread_mutex_unlock(&writer->lock);
    return phase;
}

/* ---- the thread ----------------------------------------------------------------------------- */

static dt_status retain(struct dt_writer *writer)
{
    pthread_mutex_lock(&writer->spare_lock);
    dt_status status = dt__folder_retain(writer->dir, writer->keep, writer->spare);
    pthread_mutex_unlock(&writer->spare_lock);
    return status;
}

static dt_status write_file(struct dt_writer *writer)
{
    const struct dt_checkpoint *checkpoint = &writer->snapshot.checkpoint;
    DT_TRY(dt__checkpoint_pack(checkpoint, &writer->image));
    return dt__folder_write(writer->dir, &writer->image, checkpoint->step, &writer->file);
}

static dt_status follow_up(struct dt_writer *writer)
{
    DT_TRY(retain(writer));
    return writer->then ? writer->then(writer->arg, &writer->snapshot.checkpoint) : DT_OK;
}

static void save(struct dt_writer *writer)
{
    double start = dt_clock_secs();
    dt_status status = write_file(writer);
    double secs = dt_clock_secs() - start;
    if (!status) status = follow_up(writer);
    if (status) snprintf(writer->error, sizeof writer->error, "%s", dt_error_text());
    writer->saved = (struct dt_saved){status, writer->snapshot.checkpoint.step, writer->file, secs};
}

/* Only this thread removes files: never between a new file and its latest.h5. */
static void *run(void *arg)
{
    struct dt_writer *writer = arg;
    enum phase phase;
    do {
        bool tidy;
        phase = wait_for_work(writer, &tidy);
        if (tidy && retain(writer)) dt_warn("%s", dt_error_text());
        if (phase != BUSY) continue;
        save(writer);
        set_phase(writer, ENDED);
    } while (phase != QUIT);
    return NULL;
}

/* Signals are the main thread's. */
static int start_thread(struct dt_writer *writer)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&writer->thread, NULL, run, writer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* ---- the caller ----------------------------------------------------------------------------- */

static void free_writer(struct dt_writer *writer)
{
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
    pthread_mutex_destroy(&writer->spare_lock);
    dt__snapshot_free(&writer->snapshot);
    dt__image_free(&writer->image);
    dt_free(writer->file);
    dt_free(writer->spare);
    dt_free(writer->dir);
    dt_free(writer);
}

dt_status dt_writer_create(const char *dir, int64_t keep, dt_writer_then_fn *then, void *arg,
                           struct dt_writer **out)
{
    struct dt_writer *writer;
    DT_TRY(dt_alloc(1, sizeof *writer, "a checkpoint writer", &writer));
    writer->keep = keep;
    writer->then = then;
    writer->arg = arg;
    pthread_mutex_init(&writer->lock, NULL);
    pthread_mutex_init(&writer->spare_lock, NULL);
    pthread_cond_init(&writer->changed, NULL);
    dt_status status = dt_strdup(dir, &writer->dir);
    if (!status && start_thread(writer))
        status = dt_fail(DT_EMEMORY, "cannot start the thread that writes checkpoints");
    if (status)
        free_writer(writer);
    else
        *out = writer;
    return status;
}

void dt_writer_destroy(struct dt_writer *writer)
{
    if (!writer) return;
    wait_for_end(writer);
    set_phase(writer, QUIT);
    pthread_join(writer->thread, NULL);
    free_writer(writer);
}

bool dt_writer_busy(struct dt_writer *writer)
{
    return get_phase(writer) == BUSY;
}

dt_status dt_writer_start(struct dt_writer *writer, const struct dt_checkpoint *checkpoint)
{
    struct dt_saved saved;
    if (dt_writer_poll(writer, true, &saved) && saved.status) return saved.status;
    dt_free(writer->file);
    writer->file = NULL;
    DT_TRY(dt__snapshot_take(&writer->snapshot, checkpoint));
    set_phase(writer, BUSY);
    return DT_OK;
}

bool dt_writer_poll(struct dt_writer *writer, bool wait, struct dt_saved *out)
{
    enum phase phase = wait ? wait_for_end(writer) : get_phase(writer);
    if (phase != ENDED) return false;
    *out = writer->saved;
    if (out->status) dt_fail(out->status, "%s", writer->error);
    set_phase(writer, IDLE);
    return true;
}

static void ask_to_tidy(struct dt_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    writer->tidy = true;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
}

void dt_writer_spare(struct dt_writer *writer, const char *file)
{
    char *copy = NULL;
    if (file && dt_strdup(file, &copy)) dt_warn("%s is not spared: %s", file, dt_error_text());
    pthread_mutex_lock(&writer->spare_lock);
    char *old = writer->spare;
    writer->spare = copy;
    pthread_mutex_unlock(&writer->spare_lock);
    if (old) ask_to_tidy(writer);
    dt_free(old);
}
