/* Gradients of touched rows: merge, sum, norm and update. */
#include "comm/rows.h"

#include <string.h>

#include "base/bf16.h"
#include "base/clones.h"
#include "comm/exchange.h"

/* Where rows are listed: a replica's, or a subtree's sum. */
struct leaf {
    int first;               /* its first replica */
    struct dt_touched *list; /* (ranges) */
    /* the listed rows, one behind the other from a range's offset on; NULL: rounded alone */
    float *vector;
    /* a subtree's that is all of a group: likewise, in bf16, to send or as they have come */
    uint16_t *rounded;
    uint32_t **summed; /* (ranges) (agents) a subtree's rows of each; NULL: not summed here */
};

/* A node of the trees: replicas [a, b), or groups. */
struct branch {
    bool of_groups;
    int a, b;
};

/* What a merge is made of. */
struct leaves {
    const struct leaf *leaf; /* (count), rising */
    int count;
    struct branch branch; /* that they make up */
};

/* A leaf that has the row at which the merge is. */
struct holder {
    const struct leaf *leaf;
    const uint32_t *row; /* its list from that row on */
    const uint32_t *end; /* of the merge there */
};

struct dt__rows {
    struct dt_row_range *range; /* (ranges), copied */
    int ranges;
    struct leaf *replica, *subtree; /* (R), (subtrees) of several nodes */
    struct dt_touched *list;        /* (2 R, ranges) those of the leaves */
    uint32_t **summed;              /* (R, ranges) likewise */
    /* of the whole sum: the replicas, or, of several nodes, the subtrees */
    struct leaves all;

    /* The merge under way. */
    const struct leaves *leaves;
    struct holder *head;   /* (R) leaves with rows to come */
    struct holder *holder; /* (R) of the row at hand */
    int heads, holders;

    size_t block;  /* floats in sum: a block, or the widest row */
    float *sum;    /* (block) of rows one behind the other */
    uint32_t *row; /* (block) their numbers */
};

/* ---- create --------------------------------------------------------------------------------- */

dt_status dt__rows_create(struct dt_exchange *x)
{
    const size_t replicas = (size_t)x->spec.replicas, ranges = (size_t)x->spec.row_ranges;
    if (!ranges) return DT_OK;
    DT_TRY(dt_alloc(1, sizeof *x->rows, "touched rows", &x->rows));
    struct dt__rows *rows = x->rows;
    rows->ranges = (int)ranges;
    rows->block = DT__TREE_BLOCK;
    DT_TRY(dt_alloc(ranges, sizeof *rows->range, "touched rows", &rows->range));
    memcpy(rows->range, x->spec.row_range, ranges * sizeof *rows->range);
    x->spec.row_range = rows->range;
    for (size_t i = 0, behind = 0, b = 0; i < ranges; i++) {
        const struct dt_row_range *range = &rows->range[i];
        const size_t end = range->offset + range->rows * range->width;
        while (b < (size_t)x->spec.buckets && x->bucket[b].at.end <= range->offset)
            b++;
        if (range->offset < behind || range->rows > UINT32_MAX || end > x->bucket[b].at.end)
            return dt_fail(DT_EUSAGE,
                           "exchange: range %zu of rows does not lie behind the one "
                           "before, in one bucket",
                           i);
        behind = end;
        if (range->width > rows->block) rows->block = range->width;
    }
    DT_TRY(dt_alloc(2 * replicas * ranges, sizeof *rows->list, "touched rows", &rows->list));
    DT_TRY(dt_alloc(replicas * ranges, sizeof *rows->summed, "touched rows", &rows->summed));
    DT_TRY(dt_alloc(replicas, sizeof *rows->replica, "touched rows", &rows->replica));
    for (int r = 0; r < x->spec.replicas; r++)
        rows->replica[r] = (struct leaf){.first = r, .list = rows->list + r * rows->ranges};
    DT_TRY(dt_alloc(replicas, sizeof *rows->subtree, "touched rows", &rows->subtree));
    DT_TRY(dt_alloc(replicas, sizeof *rows->head, "touched rows", &rows->head));
    DT_TRY(dt_alloc(replicas, sizeof *rows->holder, "touched rows", &rows->holder));
    DT_TRY(dt_alloc(rows->block, sizeof *rows->row, "touched rows", &rows->row));
    return dt_alloc(rows->block, sizeof *rows->sum, "touched rows", &rows->sum);
}

void dt__rows_destroy(struct dt_exchange *x)
{
    struct dt__rows *rows = x->rows;
    if (!rows) return;
    void *owned[] = {rows->range, rows->replica, rows->subtree, rows->list, rows->summed,
                     rows->head,  rows->holder,  rows->row,     rows->sum,  rows};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        dt_free(owned[i]);
}

bool dt__rows_are_touched(const struct dt_exchange *x)
{
    return x->rows && (x->nodes == 1 || x->exchange != DT_EXCHANGE_REDUCE);
}

const struct dt_touched *dt__rows_touched(const struct dt_exchange *x, int replica)
{
    return x->rows->replica[replica].list;
}

/* Empty lists. */
static void lists_map(const struct dt__rows *rows, struct dt__room *room, struct dt_touched *out)
{
    for (int i = 0; i < rows->ranges; i++) {
        out[i].count = dt__room_take(room, 1, sizeof *out->count);
        out[i].row = dt__room_take(room, rows->range[i].rows, sizeof *out->row);
        if (out[i].count) *out[i].count = 0;
    }
}

void dt__rows_map(struct dt_exchange *x, int replica, struct dt__room *room)
{
    struct dt__rows *rows = x->rows;
    rows->replica[replica].vector = x->slot[replica];
    lists_map(rows, room, rows->replica[replica].list);
    rows->all = (struct leaves){rows->replica, x->spec.replicas, {true, 0, x->spec.groups}};
}

void dt__rows_map_subtree(struct dt_exchange *x, int s, struct dt__room *room)
{
    struct dt__rows *rows = x->rows;
    const int first = x->subtree[s].first, ranges = rows->ranges;
    struct leaf *leaf = &rows->subtree[s];
    const bool own = x->subtree[s].node == x->node, lone = x->subtree[s].end == first + 1;
    const bool rounded = x->spec.wire && dt__is_whole(x, &x->subtree[s]);
    rows->all = (struct leaves){rows->subtree, x->subtrees, {true, 0, x->spec.groups}};
    *leaf = rows->replica[first];
    leaf->rounded = rounded ? dt__room_take(room, x->spec.params, sizeof(uint16_t)) : NULL;
    if (own && lone) return;
    leaf->list = rows->list + (x->spec.replicas + first) * ranges;
    leaf->vector = own || !rounded ? dt__room_take(room, x->spec.params, sizeof(float)) : NULL;
    leaf->summed = rows->summed + first * ranges;
    lists_map(rows, room, leaf->list);
    for (int i = 0; i < ranges; i++)
        leaf->summed[i] = dt__room_take(room, (size_t)x->agents, sizeof(uint32_t));
}

/* ---- merge ---------------------------------------------------------------------------------- */

/* How many rows of a list are below `row`. */
static uint32_t count_below(const struct dt_touched *list, uint32_t row)
{
    uint32_t from = 0, to = *list->count;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (list->row[middle] < row)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The first row behind `share` of so many shares of the lists' entries. */
static uint32_t row_behind(const struct dt__rows *rows, const struct leaves *leaves, int range,
                           int share, int shares)
{
    uint64_t all = 0;
    uint32_t from = 0, to = (uint32_t)rows->range[range].rows;
    if (share == shares) return to;
    for (int l = 0; l < leaves->count; l++)
        all += *leaves->leaf[l].list[range].count;
    const uint64_t wanted = all * (uint64_t)share / (uint64_t)shares;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        uint64_t below = 0;
        for (int l = 0; l < leaves->count; l++)
            below += count_below(&leaves->leaf[l].list[range], middle);
        if (below < wanted)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The rows of a range that this worker updates: as many touched ones as the others', or as many
 * rows. A bank alone on its node updates all. */
static void rows_slice(const struct dt_exchange *x, int range, uint32_t *from, uint32_t *to)
{
    const struct dt__rows *rows = x->rows;
    const int workers = x->agents ? x->agents : 1, worker = x->agents ? x->agent : 0;
    const uint64_t all = rows->range[range].rows;
    if (rows->range[range].touched_alone) {
        *from = row_behind(rows, &rows->all, range, worker, workers);
        *to = row_behind(rows, &rows->all, range, worker + 1, workers);
        return;
    }
    *from = (uint32_t)(all * (uint64_t)worker / (uint64_t)workers);
    *to = (uint32_t)(all * ((uint64_t)worker + 1) / (uint64_t)workers);
}

static void merge_begin(struct dt__rows *rows, const struct leaves *leaves, int range,
                        uint32_t from, uint32_t to)
{
    rows->leaves = leaves;
    rows->heads = 0;
    for (int l = 0; l < leaves->count; l++) {
        const struct leaf *leaf = &leaves->leaf[l];
        const struct dt_touched *list = &leaf->list[range];
        const uint32_t begin = count_below(list, from), end = count_below(list, to);
        if (begin < end)
            rows->head[rows->heads++] = (struct holder){leaf, list->row + begin, list->row + end};
    }
}

/* The next row, with the leaves that have it, in order. */
static bool merge_next(struct dt__rows *rows, uint32_t *out_row)
{
    uint32_t next = UINT32_MAX;
    if (!rows->heads) return false;
    for (int h = 0; h < rows->heads; h++)
        if (*rows->head[h].row < next) next = *rows->head[h].row;
    int heads = 0;
    rows->holders = 0;
    for (int h = 0; h < rows->heads; h++) {
        struct holder head = rows->head[h];
        if (*head.row == next) {
            rows->holder[rows->holders++] = head;
            head.row++;
        }
        if (head.row < head.end) rows->head[heads++] = head;
    }
    rows->heads = heads;
    *out_row = next;
    return true;
}

/* Where its row stands in the leaf's vector. */
static size_t holder_at(const struct dt__rows *rows, int range, struct holder holder)
{
    const struct dt_row_range *r = &rows->range[range];
    return r->offset + (size_t)(holder.row - holder.leaf->list[range].row) * r->width;
}

/* ---- sum ------------------------------------------------------------------------------------ */

/* A group's sum; never -0, as where a leaf lacks the row. */
DT__CLONES
static void sum_round(size_t n, const float *values, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = dt__bf16_value(dt__bf16_of(values[i])) + 0.0f;
}

/* The sum over a node of floats [at, at + n) of the row at hand, whose holders there are [first,
 * last), one at least; scratch or a leaf's own place. Leaves that do not have the row are left out:
 * they would add 0. */
static const float *sum_holders(const struct dt_exchange *x, int range, int first, int last,
                                struct branch branch, size_t at, size_t n,
                                float (*block)[DT__TREE_BLOCK])
{
    const struct holder *holder = x->rows->holder;
    if (branch.of_groups && branch.b - branch.a == 1) {
        const struct dt__group *group = &x->group[branch.a];
        const struct branch replicas = {false, group->first, group[1].first};
        const float *sum = sum_holders(x, range, first, last, replicas, at, n, block);
        if (!x->spec.wire) return sum;
        sum_round(n, sum, block[0]);
        return block[0];
    }
    if (!branch.of_groups && last - first == 1) {
        const struct leaf *leaf = holder[first].leaf;
        at += holder_at(x->rows, range, holder[first]);
        if (leaf->vector) return leaf->vector + at;
        dt__wire_read(DT_WIRE_BF16, at, n, (const unsigned char *)(leaf->rounded + at), block[0]);
        return block[0];
    }
    const int split = dt__tree_split(branch.a, branch.b);
    const int boundary = branch.of_groups ? x->group[split].first : split;
    const struct branch low = {branch.of_groups, branch.a, split},
                        high = {branch.of_groups, split, branch.b};
    int middle = first;
    while (middle < last && holder[middle].leaf->first < boundary)
        middle++;
    if (middle == first) return sum_holders(x, range, first, last, high, at, n, block);
    if (middle == last) return sum_holders(x, range, first, last, low, at, n, block);
    const float *left = sum_holders(x, range, first, middle, low, at, n, block);
    const float *right = sum_holders(x, range, middle, last, high, at, n, block + 1);
    float *restrict sum = block[0];
    if (left != sum) memcpy(sum, left, n * sizeof *left);
    for (size_t i = 0; i < n; i++)
        sum[i] += right[i];
    return sum;
}

/* The sum of the row at hand. Where a leaf lacks it the whole gradient has +0, which makes +0 of
 * -0: at any node above it, so that it does not matter where in between this is done. */
static void row_sum(const struct dt_exchange *x, int range, float *out)
{
    const struct dt__rows *rows = x->rows;
    const size_t width = rows->range[range].width;
    const bool all = rows->holders == rows->leaves->count;
    for (size_t at = 0; at < width; at += DT__TREE_BLOCK) {
        const size_t n = width - at < DT__TREE_BLOCK ? width - at : DT__TREE_BLOCK;
        const float *sum =
            sum_holders(x, range, 0, rows->holders, rows->leaves->branch, at, n, x->block);
        for (size_t i = 0; i < n; i++)
            out[at + i] = all ? sum[i] : sum[i] + 0.0f;
    }
}

/* ---- several nodes: sums of subtrees -------------------------------------------------------- */

static struct leaves subtree_leaves(const struct dt_exchange *x, const struct dt__subtree *subtree)
{
    return (struct leaves){x->rows->replica + subtree->first,
                           subtree->end - subtree->first,
                           {false, subtree->first, subtree->end}};
}

/* The node sums the subtree by itself: it is not one replica's. */
static bool subtree_is_summed(const struct dt_exchange *x, const struct dt__subtree *subtree)
{
    return subtree->node == x->node && subtree->end - subtree->first > 1;
}

struct dt__subtree_rows dt__rows_of_subtree(const struct dt_exchange *x, int s, int range)
{
    const struct leaf *leaf = &x->rows->subtree[s];
    const size_t offset = x->rows->range[range].offset;
    return (struct dt__subtree_rows){leaf->list[range], leaf->vector ? leaf->vector + offset : NULL,
                                     leaf->rounded ? leaf->rounded + offset : NULL};
}

/* As nobody knows how many rows the others will have, each worker writes to where its first row
 * would be if all were touched. */
void dt__rows_sum_subtrees(struct dt_exchange *x, int range)
{
    struct dt__rows *rows = x->rows;
    const size_t width = rows->range[range].width;
    for (int p = 0; p < x->subtrees; p++) {
        if (!subtree_is_summed(x, &x->subtree[p])) continue;
        const struct leaves leaves = subtree_leaves(x, &x->subtree[p]);
        const struct dt__subtree_rows out = dt__rows_of_subtree(x, p, range);
        const uint32_t from = row_behind(rows, &leaves, range, x->agent, x->agents);
        const uint32_t to = row_behind(rows, &leaves, range, x->agent + 1, x->agents);
        uint32_t row, at = from;
        merge_begin(rows, &leaves, range, from, to);
        for (; merge_next(rows, &row); at++) {
            row_sum(x, range, out.values + at * width);
            out.list.row[at] = row;
        }
        rows->subtree[p].summed[range][x->agent] = at - from;
    }
}

void dt__rows_close_subtrees(struct dt_exchange *x)
{
    const struct dt__rows *rows = x->rows;
    for (int i = 0; i < rows->ranges * x->subtrees; i++) {
        const int s = i / rows->ranges, range = i % rows->ranges;
        const size_t width = rows->range[range].width;
        const struct dt__subtree_rows out = dt__rows_of_subtree(x, s, range);
        uint32_t count = 0;
        if (x->subtree[s].node != x->node) continue;
        const struct leaves leaves = subtree_leaves(x, &x->subtree[s]);
        for (int w = 0; w < x->agents && subtree_is_summed(x, &x->subtree[s]); w++) {
            const uint32_t from = row_behind(rows, &leaves, range, w, x->agents);
            const uint32_t n = rows->subtree[s].summed[range][w];
            memmove(out.list.row + count, out.list.row + from, n * sizeof *out.list.row);
            memmove(out.values + count * width, out.values + from * width,
                    n * width * sizeof(float));
            *out.list.count = count += n;
        }
        if (out.rounded) dt__bf16_round(*out.list.count * width, out.values, out.rounded);
    }
}

/* ---- norm and update ------------------------------------------------------------------------ */

void dt__rows_norm(struct dt_exchange *x, int i, struct dt__floats at, struct dt__norm *norm)
{
    struct dt__rows *rows = x->rows;
    const struct dt_row_range *range = &rows->range[i];
    uint32_t row;
    merge_begin(rows, &rows->all, i, (uint32_t)((at.begin - range->offset) / range->width),
                (uint32_t)((at.end - range->offset + range->width - 1) / range->width));
    while (merge_next(rows, &row)) {
        row_sum(x, i, rows->sum);
        dt__norm_add(norm, rows->sum, range->offset + row * range->width, range->width);
    }
}

/* So many rows at a time that their sums stay in the cache. */
void dt__rows_update(struct dt_exchange *x, int i)
{
    struct dt__rows *rows = x->rows;
    const struct dt_row_range *range = &rows->range[i];
    const size_t most = rows->block / range->width, width = range->width;
    uint32_t from, to, row = 0;
    rows_slice(x, i, &from, &to);
    merge_begin(rows, &rows->all, i, from, to);
    bool more = merge_next(rows, &row);
    while (range->touched_alone && more) {
        size_t count = 0;
        for (; more && count < most; more = merge_next(rows, &row)) {
            row_sum(x, i, rows->sum + count * width);
            rows->row[count++] = row;
        }
        x->spec.update_rows(x->spec.arg, &x->info, range, rows->row, count, rows->sum, x->vectors);
    }
    for (uint32_t end; !range->touched_alone && from < to; from = end) { /* others' gradient is 0 */
        end = to - from < most ? to : from + (uint32_t)most;
        const size_t n = (end - from) * width, at = range->offset + from * width;
        memset(rows->sum, 0, n * sizeof *rows->sum);
        for (; more && row < end; more = merge_next(rows, &row))
            row_sum(x, i, rows->sum + (row - from) * width);
        x->spec.update(x->spec.arg, &x->info, at, n, rows->sum, x->vectors, x->vectors[0] + at);
    }
}
