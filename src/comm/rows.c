/* Gradients of touched rows: merge, sum, norm and update. */
#include "comm/rows.h"

#include <string.h>

#include "base/clones.h"
#include "comm/reducer.h"

enum { LINE = 64 };

/* A replica that has the row at which the merge is. */
struct holder {
    int replica;
    uint32_t at; /* the row's place in its list */
};

struct dt__rows {
    struct dt_row_range *range; /* (ranges), copied */
    int ranges;
    struct dt_touched *touched; /* (R, ranges) the lists of each replica */
    bool mapped;                /* they are in shared memory: gradients are of touched rows */

    /* The merge under way: replicas with rows to come, where in their lists it is, and ends. */
    struct holder *head;   /* (R) */
    uint32_t *end;         /* (R) by replica */
    struct holder *holder; /* (R) of the row at hand */
    int heads, holders;

    size_t block;  /* floats in sum: a block, or the widest row */
    float *sum;    /* (block) of rows one behind the other */
    uint32_t *row; /* (block) their numbers */
};

/* ---- create --------------------------------------------------------------------------------- */

static dt_status rows_check(const struct dt_reducer *x)
{
    size_t behind = 0;
    for (int i = 0; i < x->spec.row_ranges; i++) {
        const struct dt_row_range *range = &x->spec.row_range[i];
        const size_t end = range->offset + range->rows * range->width;
        int b = 0;
        while (b < x->spec.buckets && x->spec.bucket_end[b] <= range->offset)
            b++;
        if (range->offset < behind || range->rows > UINT32_MAX || b == x->spec.buckets ||
            end > x->spec.bucket_end[b])
            return dt_fail(DT_EUSAGE, "reducer: range %d of rows does not lie behind the one "
                                      "before, in one bucket", i);
        behind = end;
    }
    return DT_OK;
}

dt_status dt__rows_create(struct dt_reducer *x)
{
    const size_t replicas = (size_t)x->spec.replicas, ranges = (size_t)x->spec.row_ranges;
    struct dt__rows *rows;
    if (!ranges) return DT_OK;
    DT_TRY(rows_check(x));
    DT_TRY(dt_alloc(1, sizeof *x->rows, "touched rows", &x->rows));
    rows = x->rows;
    rows->ranges = (int)ranges;
    rows->block = DT__TREE_BLOCK;
    DT_TRY(dt_alloc(ranges, sizeof *rows->range, "touched rows", &rows->range));
    for (size_t i = 0; i < ranges; i++) {
        rows->range[i] = x->spec.row_range[i];
        if (rows->range[i].width > rows->block) rows->block = rows->range[i].width;
    }
    x->spec.row_range = rows->range;
    DT_TRY(dt_alloc(replicas * ranges, sizeof *rows->touched, "touched rows", &rows->touched));
    DT_TRY(dt_alloc(replicas, sizeof *rows->head, "touched rows", &rows->head));
    DT_TRY(dt_alloc(replicas, sizeof *rows->end, "touched rows", &rows->end));
    DT_TRY(dt_alloc(replicas, sizeof *rows->holder, "touched rows", &rows->holder));
    DT_TRY(dt_alloc(rows->block, sizeof *rows->row, "touched rows", &rows->row));
    return dt_alloc(rows->block, sizeof *rows->sum, "touched rows", &rows->sum);
}

void dt__rows_destroy(struct dt_reducer *x)
{
    if (!x->rows) return;
    void *owned[] = {x->rows->range,  x->rows->touched, x->rows->head, x->rows->end,
                     x->rows->holder, x->rows->row,     x->rows->sum,  x->rows};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        dt_free(owned[i]);
}

static size_t list_bytes(const struct dt_row_range *range)
{
    return LINE + ((range->rows * sizeof(uint32_t) + LINE - 1) & ~(size_t)(LINE - 1));
}

size_t dt__rows_bytes(const struct dt_reducer *x)
{
    size_t bytes = 0;
    for (int i = 0; x->rows && x->groups == 1 && i < x->rows->ranges; i++)
        bytes += list_bytes(&x->rows->range[i]);
    return bytes;
}

void dt__rows_map(struct dt_reducer *x, int replica, void *memory)
{
    unsigned char *at = memory;
    struct dt__rows *rows = x->rows;
    if (!dt__rows_bytes(x)) return;
    for (int i = 0; i < rows->ranges; at += list_bytes(&rows->range[i++]))
        rows->touched[replica * rows->ranges + i] = (struct dt_touched){
            .row = (uint32_t *)(void *)(at + LINE), .count = (uint32_t *)(void *)at};
    rows->mapped = true;
}

bool dt__rows_are_touched(const struct dt_reducer *x)
{
    return x->rows && x->rows->mapped;
}

const struct dt_touched *dt_reducer_touched(const struct dt_reducer *x, int replica)
{
    return dt__rows_are_touched(x) ? &x->rows->touched[replica * x->rows->ranges] : NULL;
}

/* ---- merge ---------------------------------------------------------------------------------- */

static const struct dt_touched *list_of(const struct dt__rows *rows, int replica, int range)
{
    return &rows->touched[replica * rows->ranges + range];
}

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

/* The first row behind `part` of so many parts of the lists' entries. */
static uint32_t row_behind(const struct dt_reducer *x, int range, int part, int parts)
{
    const struct dt__rows *rows = x->rows;
    uint64_t all = 0;
    uint32_t from = 0, to = (uint32_t)rows->range[range].rows;
    if (part == parts) return to;
    for (int r = 0; r < x->spec.replicas; r++)
        all += *list_of(rows, r, range)->count;
    const uint64_t wanted = all * (uint64_t)part / (uint64_t)parts;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        uint64_t below = 0;
        for (int r = 0; r < x->spec.replicas; r++)
            below += count_below(list_of(rows, r, range), middle);
        if (below < wanted)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* This worker's rows of a range: as many touched ones as the others', or as many rows. */
static void rows_slice(const struct dt_reducer *x, int range, uint32_t *from, uint32_t *to)
{
    const uint64_t all = x->rows->range[range].rows, workers = (uint64_t)x->group_workers;
    if (x->rows->range[range].touched_alone) {
        *from = row_behind(x, range, x->worker, x->group_workers);
        *to = row_behind(x, range, x->worker + 1, x->group_workers);
        return;
    }
    *from = (uint32_t)(all * (uint64_t)x->worker / workers);
    *to = (uint32_t)(all * ((uint64_t)x->worker + 1) / workers);
}

static void merge_begin(struct dt_reducer *x, int range, uint32_t from, uint32_t to)
{
    struct dt__rows *rows = x->rows;
    rows->heads = 0;
    for (int r = 0; r < x->spec.replicas; r++) {
        const struct dt_touched *list = list_of(rows, r, range);
        const struct holder head = {r, count_below(list, from)};
        rows->end[r] = count_below(list, to);
        if (head.at < rows->end[r]) rows->head[rows->heads++] = head;
    }
}

/* The next row, with the replicas that have it, in order. */
static bool merge_next(struct dt__rows *rows, int range, uint32_t *out_row)
{
    uint32_t next = UINT32_MAX;
    if (!rows->heads) return false;
    for (int h = 0; h < rows->heads; h++) {
        const uint32_t row = list_of(rows, rows->head[h].replica, range)->row[rows->head[h].at];
        if (row < next) next = row;
    }
    int heads = 0;
    rows->holders = 0;
    for (int h = 0; h < rows->heads; h++) {
        struct holder head = rows->head[h];
        if (list_of(rows, head.replica, range)->row[head.at] == next)
            rows->holder[rows->holders++] = (struct holder){head.replica, head.at++};
        if (head.at < rows->end[head.replica]) rows->head[heads++] = head;
    }
    rows->heads = heads;
    *out_row = next;
    return true;
}

static float *holder_row(const struct dt_reducer *x, int range, struct holder holder)
{
    const struct dt_row_range *r = &x->rows->range[range];
    return x->slot[holder.replica] + r->offset + holder.at * r->width;
}

/* ---- sum ------------------------------------------------------------------------------------ */

/* to += from, of which those of replicas that do not have the row are left out: they would add 0. */
static void row_add(size_t n, const float *from, float *restrict to)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* The sum over node [a, b) of floats [at, at + n) of the row at hand, whose holders there are
 * [first, last), one at least; scratch or a slot. */
static const float *sum_holders(const struct dt_reducer *x, int range, int first, int last, int a,
                                int b, size_t at, size_t n, float (*block)[DT__TREE_BLOCK])
{
    const struct holder *holder = x->rows->holder;
    if (last - first == 1) return holder_row(x, range, holder[first]) + at;
    const int split = dt__tree_split(a, b);
    int middle = first;
    while (middle < last && holder[middle].replica < split)
        middle++;
    if (middle == first)
        return sum_holders(x, range, first, last, split, b, at, n, block);
    if (middle == last)
        return sum_holders(x, range, first, last, a, split, at, n, block);
    const float *left = sum_holders(x, range, first, middle, a, split, at, n, block);
    const float *right = sum_holders(x, range, middle, last, split, b, at, n, block + 1);
    if (left != block[0]) memcpy(block[0], left, n * sizeof *left);
    row_add(n, right, block[0]);
    return block[0];
}

/* The sum of the row at hand. Where a replica lacks it the whole gradient has +0, which makes +0 of -0. */
static void row_sum(const struct dt_reducer *x, int range, float *out)
{
    const struct dt__rows *rows = x->rows;
    const size_t width = rows->range[range].width;
    const bool all = rows->holders == x->spec.replicas;
    for (size_t at = 0; at < width; at += DT__TREE_BLOCK) {
        const size_t n = width - at < DT__TREE_BLOCK ? width - at : DT__TREE_BLOCK;
        const float *sum = sum_holders(x, range, 0, rows->holders, 0, x->spec.replicas, at, n,
                                       x->scratch->block);
        for (size_t i = 0; i < n; i++)
            out[at + i] = all ? sum[i] : sum[i] + 0.0f;
    }
}

void dt__rows_sum(struct dt_reducer *x)
{
    uint32_t from, to, row;
    for (int i = 0; i < x->rows->ranges; i++) {
        rows_slice(x, i, &from, &to);
        merge_begin(x, i, from, to);
        while (merge_next(x->rows, i, &row))
            row_sum(x, i, holder_row(x, i, x->rows->holder[0]));
    }
}

/* ---- norm ----------------------------------------------------------------------------------- */

/* Squares of a block under way. */
struct norm_lanes {
    size_t block;
    double lane[8];
};

static void norm_close(const struct dt_reducer *x, struct norm_lanes *lanes)
{
    const double *lane = lanes->lane;
    x->norms[lanes->block] =
        ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    memset(lanes->lane, 0, sizeof lanes->lane);
}

/* Adds floats [offset, offset + n) of the sum, as far as they lie in [begin, end). */
static void norm_add(const struct dt_reducer *x, struct norm_lanes *lanes, size_t begin, size_t end,
                     const float *sum, size_t offset, size_t n)
{
    const size_t last = offset + n < end ? offset + n : end;
    for (size_t at = offset > begin ? offset : begin, stop; at < last; at = stop) {
        const size_t block = at / DT__TREE_BLOCK, behind = (block + 1) * DT__TREE_BLOCK;
        stop = last < behind ? last : behind;
        if (block != lanes->block) {
            norm_close(x, lanes);
            lanes->block = block;
        }
        for (size_t i = at; i < stop; i++) /* a block begins at a multiple of 8 */
            lanes->lane[i & 7] += (double)sum[i - offset] * (double)sum[i - offset];
    }
}

/* Rows of [begin, end), the first and the last of which may lie there in part. */
static void norm_add_rows(struct dt_reducer *x, struct norm_lanes *lanes, int i, size_t begin,
                          size_t end)
{
    const struct dt_row_range *range = &x->rows->range[i];
    const size_t behind = range->offset + range->rows * range->width;
    const size_t from = begin > range->offset ? begin : range->offset;
    const size_t to = end < behind ? end : behind;
    uint32_t row;
    if (from >= to) return;
    merge_begin(x, i, (uint32_t)((from - range->offset) / range->width),
                (uint32_t)((to - range->offset + range->width - 1) / range->width));
    while (merge_next(x->rows, i, &row))
        norm_add(x, lanes, begin, end, holder_row(x, i, x->rows->holder[0]),
                 range->offset + row * range->width, range->width);
}

void dt__rows_norm(struct dt_reducer *x, size_t begin, size_t end)
{
    struct norm_lanes lanes = {.block = begin / DT__TREE_BLOCK};
    size_t at = begin;
    end = end < x->spec.norm_params ? end : x->spec.norm_params;
    if (begin >= end) return;
    memset(x->norms + lanes.block, 0,
           ((end + DT__TREE_BLOCK - 1) / DT__TREE_BLOCK - lanes.block) * sizeof *x->norms);
    for (int i = 0; i < x->rows->ranges; i++) {
        const struct dt_row_range *range = &x->rows->range[i];
        if (range->offset > at)
            norm_add(x, &lanes, begin, end, x->slot[0] + at, at, range->offset - at);
        norm_add_rows(x, &lanes, i, begin, end);
        const size_t behind = range->offset + range->rows * range->width;
        if (behind > at) at = behind;
    }
    if (end > at) norm_add(x, &lanes, begin, end, x->slot[0] + at, at, end - at);
    norm_close(x, &lanes);
}

/* ---- update --------------------------------------------------------------------------------- */

/* The sum of the row at hand, to where updates read it. */
static void row_take(const struct dt_reducer *x, int range, float *to)
{
    const size_t bytes = x->rows->range[range].width * sizeof *to;
    if (x->spec.norm)
        memcpy(to, holder_row(x, range, x->rows->holder[0]), bytes);
    else
        row_sum(x, range, to);
}

/* Touched rows alone, so many at a time that their sums stay in the cache. */
static void update_touched(struct dt_reducer *x, int i)
{
    struct dt__rows *rows = x->rows;
    const struct dt_row_range *range = &rows->range[i];
    const size_t most = rows->block / range->width;
    uint32_t row;
    for (bool more = true; more;) {
        size_t count = 0;
        while (count < most && (more = merge_next(rows, i, &row))) {
            row_take(x, i, rows->sum + count * range->width);
            rows->row[count++] = row;
        }
        if (count)
            x->spec.update_rows(x->spec.arg, &x->info, range, rows->row, count, rows->sum,
                                x->vectors);
    }
}

/* Rows [from, to), of which those that are not touched have a gradient of 0. */
static void update_all(struct dt_reducer *x, int i, uint32_t from, uint32_t to)
{
    struct dt__rows *rows = x->rows;
    const struct dt_row_range *range = &rows->range[i];
    const size_t most = rows->block / range->width;
    uint32_t row = 0;
    bool more = merge_next(rows, i, &row);
    while (from < to) {
        const uint32_t end = to - from < most ? to : from + (uint32_t)most;
        const size_t n = (end - from) * range->width, at = range->offset + from * range->width;
        memset(rows->sum, 0, n * sizeof *rows->sum);
        for (; more && row < end; more = merge_next(rows, i, &row))
            row_take(x, i, rows->sum + (row - from) * range->width);
        x->spec.update(x->spec.arg, &x->info, at, n, rows->sum, x->vectors, x->vectors[0] + at);
        from = end;
    }
}

void dt__rows_update(struct dt_reducer *x, int i)
{
    uint32_t from, to;
    rows_slice(x, i, &from, &to);
    merge_begin(x, i, from, to);
    if (x->rows->range[i].touched_alone)
        update_touched(x, i);
    else
        update_all(x, i, from, to);
}
