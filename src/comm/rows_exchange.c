/* Touched rows between groups: every leader sends the rows of its group's parts, numbers and
 * sums, to all others.
 *
 * Ahead goes a message of how many rows there are in each list, and right behind it the lists,
 * without waiting for anybody: row numbers, and the floats of these rows, in messages of
 * DT__CHUNK floats, below the size from which MPI would ask the receiver first. So the exchange
 * takes one latency.
 *
 * Receives begin when the own group has summed its rows: by then all its workers have made the
 * updates of the step before, and read the places where rows arrive no more. */
#include <string.h>

#include "comm/reducer.h"

enum { TAG_COUNTS, TAG_ROWS };

/* The rows of a part in a range. */
struct list {
    int part, range;
};

struct dt__rows_exchange {
    MPI_Comm comm;
    struct list *list;    /* of all groups: parts and ranges in order */
    uint32_t *count;      /* (lists) rows of this step */
    int *group_list;      /* (groups + 1) where a group's lists begin */
    MPI_Request *request; /* of this step: first the counts of other groups */
    int *from;            /* (groups) whose those are */
    int *index;           /* (requests) those that have ended, of one look */
    int requests, counts; /* of which so many are of counts */
    bool started;
    int left; /* requests that have not ended, once started */
};

/* ---- create --------------------------------------------------------------------------------- */

dt_status dt__rows_exchange_create(struct dt_reducer *x, struct dt__rows_exchange **out)
{
    const size_t groups = (size_t)x->groups;
    const int ranges = x->spec.row_ranges, parts = x->parts;
    struct dt__rows_exchange *e;
    size_t most = 0; /* messages */
    DT_TRY(dt_alloc(1, sizeof *e, "touched rows", &e));
    *out = e;
    e->comm = MPI_COMM_NULL;
    DT_TRY(dt_alloc((size_t)(parts * ranges), sizeof *e->list, "touched rows", &e->list));
    DT_TRY(dt_alloc((size_t)(parts * ranges), sizeof *e->count, "touched rows", &e->count));
    DT_TRY(dt_alloc(groups + 1, sizeof *e->group_list, "touched rows", &e->group_list));
    for (int g = 0, lists = 0; g < x->groups; g++) {
        const size_t times = g == x->group_index ? groups - 1 : 1;
        most += times;
        for (int i = 0; i < parts * ranges; i++) {
            const struct dt_row_range *range = &x->spec.row_range[i % ranges];
            if (x->part[i / ranges].group != g) continue;
            e->list[lists++] = (struct list){i / ranges, i % ranges};
            most += times * (range->rows / DT__CHUNK + range->rows * range->width / DT__CHUNK + 2);
        }
        e->group_list[g + 1] = lists;
    }
    if (most > INT32_MAX)
        return dt_fail(DT_EUSAGE, "%zu messages a step, of sparse rows, are too many", most);
    DT_TRY(dt_alloc(groups, sizeof *e->from, "touched rows", &e->from));
    DT_TRY(dt_alloc(most, sizeof *e->index, "touched rows", &e->index));
    return dt_alloc(most, sizeof *e->request, "touched rows", &e->request);
}

void dt__rows_exchange_connect(struct dt_reducer *x, struct dt__rows_exchange *e)
{
    DT_MPI(MPI_Comm_dup(x->leaders.comm, &e->comm));
}

void dt__rows_exchange_destroy(struct dt__rows_exchange *e)
{
    if (!e) return;
    if (e->comm != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&e->comm));
    void *owned[] = {e->list, e->count, e->group_list, e->request, e->from, e->index, e};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        dt_free(owned[i]);
}

/* ---- a step --------------------------------------------------------------------------------- */

void dt__rows_exchange_begin(struct dt__rows_exchange *e)
{
    e->started = false;
}

/* A message of n words of 4 bytes: of this group to each other one, or from another. Groups send to those that
 * follow them first, so that not all send to the same one. */
static void post(const struct dt_reducer *x, struct dt__rows_exchange *e, int group, void *words,
                 size_t n, int tag)
{
    const bool own = group == x->group_index;
    for (int g = 1; g < (own ? x->groups : 2); g++, e->left++) {
        MPI_Request *request = &e->request[e->requests++];
        if (own)
            DT_MPI(MPI_Isend(words, (int)n, MPI_UINT32_T, (group + g) % x->groups, tag, e->comm,
                             request));
        else
            DT_MPI(MPI_Irecv(words, (int)n, MPI_UINT32_T, group, tag, e->comm, request));
    }
}

/* The messages of `n` words. */
static void post_words(const struct dt_reducer *x, struct dt__rows_exchange *e, int group,
                       void *words, size_t n)
{
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < DT__CHUNK ? n - at : DT__CHUNK;
        post(x, e, group, (uint32_t *)words + at, some, TAG_ROWS);
    }
}

/* A group's lists, whose counts are known. */
static void post_lists(const struct dt_reducer *x, struct dt__rows_exchange *e, int group)
{
    for (int l = e->group_list[group]; l < e->group_list[group + 1]; l++) {
        const struct list list = e->list[l];
        const struct dt__part_rows rows = dt__rows_of_part(x, list.part, list.range);
        *rows.list.count = e->count[l];
        post_words(x, e, group, rows.list.row, e->count[l]);
        post_words(x, e, group, rows.values, e->count[l] * x->spec.row_range[list.range].width);
    }
}

static void exchange_start(struct dt_reducer *x, struct dt__rows_exchange *e)
{
    const int me = x->group_index;
    e->started = true;
    e->requests = e->counts = e->left = 0;
    dt__rows_close_parts(x);
    for (int l = e->group_list[me]; l < e->group_list[me + 1]; l++)
        e->count[l] = *dt__rows_of_part(x, e->list[l].part, e->list[l].range).list.count;
    for (int i = 1; i <= x->groups; i++) { /* others first: their counts are the first requests */
        const int g = (me + i) % x->groups, lists = e->group_list[g + 1] - e->group_list[g];
        if (lists && g != me) e->from[e->counts++] = g;
        if (lists) post(x, e, g, e->count + e->group_list[g], (size_t)lists, TAG_COUNTS);
    }
    post_lists(x, e, me);
}

bool dt__rows_exchange_advance(struct dt_reducer *x, struct dt__rows_exchange *e)
{
    int ended;
    if (!e->started) {
        for (int b = 0; b < x->spec.buckets; b++)
            if (x->bucket[b].has_rows &&
                !dt__event_reached(&x->control->bucket[b].summed, x->group_done))
                return false;
        exchange_start(x, e);
        return true;
    }
    if (!e->left) return false;
    DT_MPI(MPI_Testsome(e->requests, e->request, &ended, e->index, MPI_STATUSES_IGNORE));
    if (ended == MPI_UNDEFINED || ended == 0) return false;
    e->left -= ended;
    for (int i = 0; i < ended; i++) /* the group's lists follow its counts */
        if (e->index[i] < e->counts) post_lists(x, e, e->from[e->index[i]]);
    return true;
}

bool dt__rows_exchange_done(const struct dt__rows_exchange *e)
{
    return e->started && e->left == 0;
}
