/* Touched rows between nodes: every first agent sends the rows of its node's subtrees, numbers and
 * sums, to all others.
 *
 * Ahead goes a message of how many rows there are in each list, and right behind it the lists,
 * without waiting for anybody: row numbers, and the floats of these rows, in messages of
 * DT__CHUNK floats, below the size from which MPI would ask the receiver first. So the exchange
 * takes one latency. With a rounded wire the floats of a whole group are bf16.
 *
 * Receives begin when the own node has summed its rows: by then all its workers have made the
 * updates of the step before, and read the places where rows arrive no more. */
#include <string.h>

#include "comm/exchange.h"

/* The rows of a subtree in a range. */
struct list {
    int subtree, range;
};

struct dt__rows_exchange {
    struct list *list;    /* of all nodes: subtrees and ranges in order */
    uint32_t *count;      /* (lists) rows of this step */
    int *node_list;       /* (nodes + 1) where a node's lists begin */
    MPI_Request *request; /* of this step: first the counts of other nodes */
    int *from;            /* (nodes) whose those are */
    int *index;           /* (requests) those that have ended, of one look */
    int requests, counts; /* of which so many are of counts */
    uint32_t step;        /* the last one that it has begun, of x->tick */
    int left;             /* requests that have not ended, of that step */
};

/* ---- create --------------------------------------------------------------------------------- */

dt_status dt__rows_exchange_create(struct dt_exchange *x)
{
    const size_t nodes = (size_t)x->nodes;
    const int ranges = x->spec.row_ranges, subtrees = x->subtrees;
    size_t most = 0; /* messages */
    DT_TRY(dt_alloc(1, sizeof *x->rows_exchange, "touched rows", &x->rows_exchange));
    struct dt__rows_exchange *e = x->rows_exchange;
    DT_TRY(dt_alloc((size_t)(subtrees * ranges), sizeof *e->list, "touched rows", &e->list));
    DT_TRY(dt_alloc((size_t)(subtrees * ranges), sizeof *e->count, "touched rows", &e->count));
    DT_TRY(dt_alloc(nodes + 1, sizeof *e->node_list, "touched rows", &e->node_list));
    for (int g = 0, lists = 0; g < x->nodes; g++) {
        const size_t times = g == x->node ? nodes - 1 : 1;
        most += times;
        for (int i = 0; i < subtrees * ranges; i++) {
            const struct dt_row_range *range = &x->spec.row_range[i % ranges];
            if (x->subtree[i / ranges].node != g) continue;
            e->list[lists++] = (struct list){i / ranges, i % ranges};
            most += times * (range->rows / DT__CHUNK + range->rows * range->width / DT__CHUNK + 2);
        }
        e->node_list[g + 1] = lists;
    }
    if (most > INT32_MAX)
        return dt_fail(DT_EUSAGE, "%zu messages a step, of sparse rows, are too many", most);
    DT_TRY(dt_alloc(nodes, sizeof *e->from, "touched rows", &e->from));
    DT_TRY(dt_alloc(most, sizeof *e->index, "touched rows", &e->index));
    return dt_alloc(most, sizeof *e->request, "touched rows", &e->request);
}

void dt__rows_exchange_destroy(struct dt_exchange *x)
{
    struct dt__rows_exchange *e = x->rows_exchange;
    if (!e) return;
    void *owned[] = {e->list, e->count, e->node_list, e->request, e->from, e->index, e};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        dt_free(owned[i]);
}

/* ---- a step --------------------------------------------------------------------------------- */

/* n bytes of this node to each other one, or from another; counts in one message. Nodes send to
 * those that follow them first, so that not all send to the same one. */
static void post(struct dt_exchange *x, int node, void *bytes, size_t n, int tag)
{
    struct dt__rows_exchange *e = x->rows_exchange;
    const bool own = node == x->node;
    const size_t most = tag == DT__TAG_COUNTS ? n : DT__CHUNK * sizeof(float);
    for (size_t at = 0, some; at < n; at += some) {
        unsigned char *from = (unsigned char *)bytes + at;
        some = n - at < most ? n - at : most;
        for (int g = 1; g < (own ? x->nodes : 2); g++, e->left++) {
            MPI_Request *request = &e->request[e->requests++];
            if (own)
                DT_MPI(MPI_Isend(from, (int)some, MPI_BYTE, (node + g) % x->nodes, tag,
                                 x->firsts.comm, request));
            else
                DT_MPI(MPI_Irecv(from, (int)some, MPI_BYTE, node, tag, x->firsts.comm, request));
        }
    }
}

/* A node's lists, whose counts are known. */
static void post_lists(struct dt_exchange *x, int node)
{
    const struct dt__rows_exchange *e = x->rows_exchange;
    for (int l = e->node_list[node]; l < e->node_list[node + 1]; l++) {
        const struct list list = e->list[l];
        const struct dt__subtree_rows rows = dt__rows_of_subtree(x, list.subtree, list.range);
        *rows.list.count = e->count[l];
        const size_t floats = e->count[l] * x->spec.row_range[list.range].width;
        post(x, node, rows.list.row, e->count[l] * sizeof *rows.list.row, DT__TAG_ROWS);
        if (rows.rounded)
            post(x, node, rows.rounded, floats * sizeof *rows.rounded, DT__TAG_ROWS);
        else
            post(x, node, rows.values, floats * sizeof *rows.values, DT__TAG_ROWS);
    }
}

static void exchange_start(struct dt_exchange *x)
{
    struct dt__rows_exchange *e = x->rows_exchange;
    const int me = x->node;
    e->step = x->tick;
    e->requests = e->counts = e->left = 0;
    dt__rows_close_subtrees(x);
    for (int l = e->node_list[me]; l < e->node_list[me + 1]; l++)
        e->count[l] = *dt__rows_of_subtree(x, e->list[l].subtree, e->list[l].range).list.count;
    for (int i = 1; i <= x->nodes; i++) { /* others first: their counts are the first requests */
        const int g = (me + i) % x->nodes, lists = e->node_list[g + 1] - e->node_list[g];
        if (lists && g != me) e->from[e->counts++] = g;
        post(x, g, e->count + e->node_list[g], (size_t)lists * sizeof *e->count, DT__TAG_COUNTS);
    }
    post_lists(x, me);
}

bool dt__rows_exchange_advance(struct dt_exchange *x)
{
    struct dt__rows_exchange *e = x->rows_exchange;
    int ended;
    if (e->step != x->tick) {
        for (int b = 0; b < x->spec.buckets; b++)
            if (x->bucket[b].has_shares &&
                !dt__event_reached(&x->control->bucket[b].summed, x->tick * (uint32_t)x->agents))
                return false;
        exchange_start(x);
        return true;
    }
    if (!e->left) return false;
    DT_MPI(MPI_Testsome(e->requests, e->request, &ended, e->index, MPI_STATUSES_IGNORE));
    if (ended == MPI_UNDEFINED || ended == 0) return false;
    e->left -= ended;
    for (int i = 0; i < ended; i++) /* the node's lists follow its counts */
        if (e->index[i] < e->counts) post_lists(x, e->from[e->index[i]]);
    return true;
}

bool dt__rows_exchange_done(const struct dt_exchange *x)
{
    return x->rows_exchange->step == x->tick && x->rows_exchange->left == 0;
}
