/* Windows of rows read ahead by a thread. */
#include "data/readahead.h"

#include <pthread.h>
#include <stdio.h>

#include "data/reader.h"

struct place { /* a window of an epoch */
    uint64_t epoch, at;
};

struct window {
    enum { FREE, FILLING, READY } state;
    struct place place;
    struct dt__block rows;
};

struct replica {
    struct dt__order order; /* the thread's own */
    const struct dt__shard *shard;
    struct window windows[2];
    struct window *held; /* what the caller reads; READY */
    struct place next;   /* what the thread fills next */
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

static bool place_same(struct place a, struct place b)
{
    return a.epoch == b.epoch && a.at == b.at;
}

static struct place place_after(const struct replica *replica, struct place place)
{
    if (place.at + 1 < dt__order_windows(&replica->order))
        return (struct place){place.epoch, place.at + 1};
    return (struct place){place.epoch + 1, 0};
}

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
    struct place place = window->place;
    uint64_t rows = dt__order_window_rows(&replica->order, place.at);
    window->rows.rows = 0;
    for (uint64_t slot = 0, run; slot < rows; slot += run) {
        pthread_mutex_lock(&ahead->lock);
        const bool wanted = !ahead->quit && !replica->jumped;
        pthread_mutex_unlock(&ahead->lock);
        if (!wanted) break;
        uint64_t local = dt__order_row(&replica->order, place.epoch, place.at, slot, &run);
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
        window->place = replica->next;
        replica->next = place_after(replica, replica->next);
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

static struct window *window_find(struct replica *replica, struct place place, int state)
{
    for (int i = 0; i < 2; i++)
        if ((int)replica->windows[i].state == state && place_same(replica->windows[i].place, place))
            return &replica->windows[i];
    return NULL;
}

dt_status dt__readahead_window(struct dt__readahead *ahead, int index, uint64_t epoch, uint64_t at,
                               const struct dt__block **out)
{
    struct replica *replica = &ahead->replicas[index];
    struct place place = {epoch, at};
    if (replica->held && place_same(replica->held->place, place)) {
        *out = &replica->held->rows;
        return DT_OK;
    }
    pthread_mutex_lock(&ahead->lock);
    replica->held = NULL;
    /* Lets go of windows that come neither here nor right behind; turns the thread here if it is
     * elsewhere. */
    bool coming = window_find(replica, place, READY) || window_find(replica, place, FILLING);
    for (int i = 0; i < 2; i++) {
        struct window *window = &replica->windows[i];
        bool wanted = place_same(window->place, place) ||
                      (coming && place_same(window->place, place_after(replica, place)));
        if (window->state == READY && !wanted) window->state = FREE;
        if (window->state == FILLING && !wanted) replica->jumped = true;
    }
    if (!coming) replica->next = place;
    pthread_cond_broadcast(&ahead->changed);
    while (!(replica->held = window_find(replica, place, READY)) && !ahead->status)
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
        replica->next = (struct place){share.epoch, share.begin / window};
        if (share.begin >= orders[i].rows) replica->next = (struct place){share.epoch + 1, 0};
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
