/* Windows of rows read ahead by a thread. */
#include "data/readahead.h"

#include <pthread.h>
#include <stdio.h>

#include "data/reader.h"

/* Windows are numbered through all epochs. */
struct window {
    enum { FREE, FILLING, READY } state;
    uint64_t number;
    struct dt__block rows;
};

struct replica {
    struct dt__order order; /* the thread's own */
    const struct dt__shard *shard;
    struct window windows[2];
    struct window *held; /* what the caller reads; READY */
    uint64_t next;       /* what the thread fills next */
    bool jumped;         /* what the thread fills now is not wanted any more */
};

struct dt__readahead {
    const struct dt_source *source;
    struct dt__cursor *cursor;
    struct replica *replicas;
    int count;
    pthread_t thread;
    bool started, quit;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    dt_status status; /* of the thread; sticky */
    char error[DT_ERROR_MAX];
};

/* ---- the thread ----------------------------------------------------------------------------- */

/* The window to fill: of the replica with the fewest ready ones. */
static struct window *window_choose(struct dt__readahead *ahead, struct replica **out_replica)
{
    struct window *chosen = NULL;
    int least = 2;
    for (int i = 0; i < ahead->count; i++) {
        struct replica *replica = &ahead->replicas[i];
        int ready = (replica->windows[0].state == READY) + (replica->windows[1].state == READY);
        if (!replica->order.rows || ready >= least) continue;
        least = ready;
        chosen = &replica->windows[replica->windows[0].state == READY];
        *out_replica = replica;
    }
    return chosen;
}

/* Reads chunk after chunk of the window, each in runs of consecutive rows, as long as it is
 * wanted. */
static dt_status window_fill(struct dt__readahead *ahead, struct replica *replica,
                             struct window *window)
{
    const uint64_t windows = dt__order_windows(&replica->order);
    const uint64_t epoch = window->number / windows, at = window->number % windows;
    const uint64_t rows = dt__order_window_rows(&replica->order, at);
    window->rows.rows = 0;
    for (uint64_t slot = 0, run; slot < rows; slot += run) {
        pthread_mutex_lock(&ahead->lock);
        const bool wanted = !ahead->quit && !replica->jumped;
        pthread_mutex_unlock(&ahead->lock);
        if (!wanted) break;
        uint64_t local = dt__order_row(&replica->order, epoch, at, slot, &run);
        struct dt__segment segment = dt__shard_run(replica->shard, local);
        if (segment.count < run) run = segment.count;
        DT_TRY(dt__cursor_read(ahead->cursor, segment.row, (size_t)run, &window->rows));
    }
    return DT_OK;
}

/* Holds the lock but while it reads or waits. */
static void *readahead_thread(void *arg)
{
    struct dt__readahead *ahead = arg;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->quit && !ahead->status) {
        struct replica *replica;
        struct window *window = window_choose(ahead, &replica);
        if (!window) {
            pthread_cond_wait(&ahead->changed, &ahead->lock);
            continue;
        }
        window->state = FILLING;
        window->number = replica->next++;
        replica->jumped = false;
        pthread_mutex_unlock(&ahead->lock);
        dt_status status = window_fill(ahead, replica, window);
        pthread_mutex_lock(&ahead->lock);
        window->state = replica->jumped ? FREE : READY;
        if (status && !replica->jumped) {
            ahead->status = status;
            snprintf(ahead->error, sizeof ahead->error, "%s", dt_error_text());
        }
        pthread_cond_broadcast(&ahead->changed);
    }
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

/* ---- the caller ----------------------------------------------------------------------------- */

static struct window *window_find(struct replica *replica, uint64_t number, int state)
{
    for (int i = 0; i < 2; i++)
        if ((int)replica->windows[i].state == state && replica->windows[i].number == number)
            return &replica->windows[i];
    return NULL;
}

dt_status dt__readahead_window(struct dt__readahead *ahead, int index, uint64_t epoch, uint64_t at,
                               const struct dt__block **out)
{
    struct replica *replica = &ahead->replicas[index];
    const uint64_t number = epoch * dt__order_windows(&replica->order) + at;
    if (replica->held && replica->held->number == number) {
        *out = &replica->held->rows;
        return DT_OK;
    }
    pthread_mutex_lock(&ahead->lock);
    replica->held = NULL;
    /* Lets go of windows that come neither here nor right behind; turns the thread here if it is
     * elsewhere. */
    bool coming = window_find(replica, number, READY) || window_find(replica, number, FILLING);
    for (int i = 0; i < 2; i++) {
        struct window *window = &replica->windows[i];
        bool wanted = window->number == number || (coming && window->number == number + 1);
        if (window->state == READY && !wanted) window->state = FREE;
        if (window->state == FILLING && !wanted) replica->jumped = true;
    }
    if (!coming) replica->next = number;
    pthread_cond_broadcast(&ahead->changed);
    while (!(replica->held = window_find(replica, number, READY)) && !ahead->status)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    dt_status status = replica->held ? DT_OK : ahead->status;
    if (status) dt_fail(status, "%s", ahead->error);
    pthread_mutex_unlock(&ahead->lock);
    if (!status) *out = &replica->held->rows;
    return status;
}

/* ---- life ----------------------------------------------------------------------------------- */

dt_status dt__readahead_create(const struct dt_source *source, const struct dt_plan *plan,
                               int first, const struct dt__order *orders, int count, uint64_t step,
                               struct dt__readahead **out)
{
    struct dt__readahead *ahead;
    dt_status status;
    DT_TRY(dt_alloc(1, sizeof *ahead, "read-ahead", &ahead));
    ahead->source = source;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    DT_GUARD(dt_alloc((size_t)count, sizeof *ahead->replicas, "replicas", &ahead->replicas));
    ahead->count = count;
    for (int i = 0; i < count; i++) {
        struct replica *replica = &ahead->replicas[i];
        const uint64_t window = orders[i].window;
        const struct dt_share share = dt_plan_share(plan, step, first + i);
        *replica = (struct replica){.order = orders[i], .shard = &plan->shards[first + i]};
        if (!orders[i].rows) continue;
        const uint64_t windows = dt__order_windows(&orders[i]), at = share.begin / window;
        replica->next = share.epoch * windows + (share.begin < orders[i].rows ? at : windows);
        for (int w = 0; w < 2; w++)
            DT_GUARD(dt__block_alloc(&source->layout, (size_t)window,
                                     dt__source_entries(source, window),
                                     &replica->windows[w].rows));
    }
    DT_GUARD(dt__cursor_open(source, &ahead->cursor));
    DT_GUARD(dt_thread_start(&ahead->thread, "read-ahead", readahead_thread, ahead));
    ahead->started = true;
    *out = ahead;
    return DT_OK;
done:
    dt__readahead_destroy(ahead);
    return status;
}

void dt__readahead_destroy(struct dt__readahead *ahead)
{
    if (!ahead) return;
    if (ahead->started) {
        pthread_mutex_lock(&ahead->lock);
        ahead->quit = true;
        pthread_cond_broadcast(&ahead->changed);
        pthread_mutex_unlock(&ahead->lock);
        pthread_join(ahead->thread, NULL);
    }
    for (int i = 0; i < ahead->count; i++)
        for (int w = 0; w < 2; w++)
            dt__block_free(&ahead->replicas[i].windows[w].rows);
    dt__cursor_close(ahead->cursor);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    dt_free(ahead->replicas);
    dt_free(ahead);
}
