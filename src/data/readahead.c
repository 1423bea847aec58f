/* Windows of rows read ahead by a thread. */
#include "data/readahead.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "data/reader.h"

struct place { /* a window of an epoch */
    uint64_t epoch, at;
};

struct window {
    enum { FREE, FILLING, READY } state;
    struct place place;
    struct dt__block rows;
};

/* One replica. */
struct lane {
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
    struct lane *lanes;
    int count;
    pthread_t thread;
    bool started, quit;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    dt_status status; /* of the thread; sticky */
    char error[DT_ERROR_MAX];
};

static bool same(struct place a, struct place b)
{
    return a.epoch == b.epoch && a.at == b.at;
}

static struct place after(const struct lane *lane, struct place place)
{
    if (place.at + 1 < dt__order_windows(&lane->order))
        return (struct place){place.epoch, place.at + 1};
    return (struct place){place.epoch + 1, 0};
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* The window to fill: of the lane with the fewest ready ones. */
static struct window *choose(struct dt__readahead *ahead, struct lane **out_lane)
{
    struct window *chosen = NULL;
    int least = 2;
    for (int i = 0; i < ahead->count; i++) {
        struct lane *lane = &ahead->lanes[i];
        int ready = (lane->windows[0].state == READY) + (lane->windows[1].state == READY);
        if (!lane->order.rows || ready >= least) continue;
        least = ready;
        chosen = &lane->windows[lane->windows[0].state == READY];
        *out_lane = lane;
    }
    return chosen;
}

static bool still_wanted(struct dt__readahead *ahead, const struct lane *lane)
{
    pthread_mutex_lock(&ahead->lock);
    bool wanted = !ahead->quit && !lane->jumped;
    pthread_mutex_unlock(&ahead->lock);
    return wanted;
}

/* Reads chunk after chunk of the window, each in runs of consecutive rows. */
static dt_status fill(struct dt__readahead *ahead, struct lane *lane, struct window *window)
{
    const struct dt__layout *layout = &ahead->source->layout;
    struct place place = window->place;
    uint64_t rows = dt__order_window_rows(&lane->order, place.at);
    for (uint64_t slot = 0, run; slot < rows && still_wanted(ahead, lane); slot += run) {
        uint64_t local = dt__order_row(&lane->order, place.epoch, place.at, slot, &run);
        struct dt__segment segment = dt__shard_run(lane->shard, local);
        if (segment.count < run) run = segment.count;
        struct dt__block to = dt__block_at(layout, window->rows, (size_t)slot);
        DT_TRY(dt__cursor_read(ahead->cursor, segment.row, (size_t)run, to));
    }
    return DT_OK;
}

/* Fills one window; called with the lock held, which it gives back while it reads. */
static void fill_one(struct dt__readahead *ahead, struct lane *lane, struct window *window)
{
    window->state = FILLING;
    window->place = lane->next;
    lane->next = after(lane, lane->next);
    lane->jumped = false;
    pthread_mutex_unlock(&ahead->lock);
    dt_status status = fill(ahead, lane, window);
    pthread_mutex_lock(&ahead->lock);
    window->state = lane->jumped ? FREE : READY;
    if (status && !lane->jumped) {
        ahead->status = status;
        snprintf(ahead->error, sizeof ahead->error, "%s", dt_error_text());
    }
    pthread_cond_broadcast(&ahead->changed);
}

static void *run(void *arg)
{
    struct dt__readahead *ahead = arg;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->quit && !ahead->status) {
        struct lane *lane;
        struct window *window = choose(ahead, &lane);
        if (window)
            fill_one(ahead, lane, window);
        else
            pthread_cond_wait(&ahead->changed, &ahead->lock);
    }
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

/* ---- the caller ----------------------------------------------------------------------------- */

static struct window *find(struct lane *lane, struct place place, int state)
{
    for (int i = 0; i < 2; i++)
        if ((int)lane->windows[i].state == state && same(lane->windows[i].place, place))
            return &lane->windows[i];
    return NULL;
}

/* Lets go of windows that come neither at `place` nor right behind it; turns the thread there if it
 * is elsewhere. */
static void turn_to(struct lane *lane, struct place place)
{
    bool coming = find(lane, place, READY) || find(lane, place, FILLING);
    for (int i = 0; i < 2; i++) {
        struct window *window = &lane->windows[i];
        bool wanted =
            same(window->place, place) || (coming && same(window->place, after(lane, place)));
        if (window->state == READY && !wanted) window->state = FREE;
        if (window->state == FILLING && !wanted) lane->jumped = true;
    }
    if (!coming) lane->next = place;
}

static dt_status wait_for(struct dt__readahead *ahead, struct lane *lane, struct place place)
{
    pthread_mutex_lock(&ahead->lock);
    lane->held = NULL;
    turn_to(lane, place);
    pthread_cond_broadcast(&ahead->changed);
    while (!(lane->held = find(lane, place, READY)) && !ahead->status)
        pthread_cond_wait(&ahead->changed, &ahead->lock);
    dt_status status = lane->held ? DT_OK : ahead->status;
    if (status) dt_fail(status, "%s", ahead->error);
    pthread_mutex_unlock(&ahead->lock);
    return status;
}

dt_status dt__readahead_window(struct dt__readahead *ahead, int index, uint64_t epoch, uint64_t at,
                               struct dt__block *out)
{
    struct lane *lane = &ahead->lanes[index];
    struct place place = {epoch, at};
    if (!lane->held || !same(lane->held->place, place)) DT_TRY(wait_for(ahead, lane, place));
    *out = lane->held->rows;
    return DT_OK;
}

/* ---- life ----------------------------------------------------------------------------------- */

static struct place start_of(const struct dt_plan *plan, const struct dt__order *order,
                             uint64_t step, int replica)
{
    struct dt_share share = dt_plan_share(plan, step, replica);
    if (share.begin >= order->rows) return (struct place){share.epoch + 1, 0};
    return (struct place){share.epoch, share.begin / order->window};
}

static dt_status make_lane(struct dt__readahead *ahead, const struct dt_plan *plan, int replica,
                           const struct dt__order *order, uint64_t step, struct lane *lane)
{
    *lane = (struct lane){.order = *order, .shard = dt__plan_shard(plan, replica)};
    if (!order->rows) return DT_OK;
    lane->next = start_of(plan, order, step, replica);
    for (int i = 0; i < 2; i++)
        DT_TRY(
            dt__block_alloc(&ahead->source->layout, (size_t)order->window, &lane->windows[i].rows));
    return DT_OK;
}

/* Signals are for the main thread: they end its waits. */
static dt_status start(struct dt__readahead *ahead)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&ahead->thread, NULL, run, ahead);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code) return dt_fail(DT_EMEMORY, "a thread to read ahead: %s", strerror(code));
    ahead->started = true;
    return DT_OK;
}

static dt_status make(struct dt__readahead *ahead, const struct dt_plan *plan, int first,
                      const struct dt__order *orders, int count, uint64_t step)
{
    DT_TRY(dt_alloc((size_t)count, sizeof *ahead->lanes, "replicas", &ahead->lanes));
    ahead->count = count;
    for (int i = 0; i < count; i++)
        DT_TRY(make_lane(ahead, plan, first + i, &orders[i], step, &ahead->lanes[i]));
    DT_TRY(dt__cursor_open(ahead->source, true, &ahead->cursor));
    return start(ahead);
}

dt_status dt__readahead_create(const struct dt_source *source, const struct dt_plan *plan,
                               int first, const struct dt__order *orders, int count, uint64_t step,
                               struct dt__readahead **out)
{
    struct dt__readahead *ahead;
    DT_TRY(dt_alloc(1, sizeof *ahead, "read-ahead", &ahead));
    ahead->source = source;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    dt_status status = make(ahead, plan, first, orders, count, step);
    if (status)
        dt__readahead_destroy(ahead);
    else
        *out = ahead;
    return status;
}

static void stop(struct dt__readahead *ahead)
{
    pthread_mutex_lock(&ahead->lock);
    ahead->quit = true;
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&ahead->lock);
    pthread_join(ahead->thread, NULL);
}

void dt__readahead_destroy(struct dt__readahead *ahead)
{
    if (!ahead) return;
    if (ahead->started) stop(ahead);
    for (int i = 0; i < ahead->count; i++)
        for (int w = 0; w < 2; w++)
            dt__block_free(&ahead->lanes[i].windows[w].rows);
    dt__cursor_close(ahead->cursor);
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    dt_free(ahead->lanes);
    dt_free(ahead);
}
