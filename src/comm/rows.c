/* Gradients of touched rows: merge, sum, norm and update. */
#include "comm/rows.h"

#include <string.h>

#include "base/clones.h"
#include "comm/reducer.h"

enum { LINE = 64 };

/* What a merge is made of: nodes of the tree whose rows are listed, each under its first
 * replica. */
struct leaves {
    const struct dt_touched *touched; /* (R, ranges) */
    float *const *vector; /* (R) the listed rows, one behind the other from a range's offset on */
    const int *leaf;      /* (count) first replicas, rising */
    int count;
    int first, end; /* the node that they make up */
};

/* A leaf that has the row at which the merge is. */
struct holder {
    int leaf;
    uint32_t at; /* the row's place in its list */
};

struct dt__rows {
    struct dt_row_range *range; /* (ranges), copied */
    int ranges;
    struct dt_touched *touched; /* (R, ranges) the lists of each replica */
    bool mapped;                /* they are in shared memory: gradients are of touched rows */
    int *replica;               /* (R) 0, 1, 2, ... */
    struct leaves all; /* of the whole sum: the replicas, or, of several groups, the parts */

    /* Several groups: of each part, under its first replica. */
    struct dt_touched *part_touched; /* (R, ranges) */
    float **part_vector;             /* (R) */
    uint32_t **summed; /* (R, ranges) (group's workers) rows of each; NULL: not summed here */
    int *part_first;   /* (parts) */

    /* The merge under way: leaves with rows to come, where in their lists it is, and ends. */
    const struct leaves *leaves;
    struct holder *head;   /* (R) */
    uint32_t *end;         /* (R) by leaf */
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
    DT_TRY(dt_alloc(replicas * ranges, sizeof *rows->touched, "touched rows", &rows->part_touched));
    DT_TRY(dt_alloc(replicas * ranges, sizeof *rows->summed, "touched rows", &rows->summed));
    DT_TRY(dt_alloc(replicas, sizeof *rows->part_vector, "touched rows", &rows->part_vector));
    DT_TRY(dt_alloc(replicas, sizeof *rows->part_first, "touched rows", &rows->part_first));
    DT_TRY(dt_alloc(replicas, sizeof *rows->replica, "touched rows", &rows->replica));
    for (int r = 0; r < x->spec.replicas; r++)
        rows->replica[r] = r;
    DT_TRY(dt_alloc(replicas, sizeof *rows->head, "touched rows", &rows->head));
    DT_TRY(dt_alloc(replicas, sizeof *rows->end, "touched rows", &rows->end));
    DT_TRY(dt_alloc(replicas, sizeof *rows->holder, "touched rows", &rows->holder));
    DT_TRY(dt_alloc(rows->block, sizeof *rows->row, "touched rows", &rows->row));
    return dt_alloc(rows->block, sizeof *rows->sum, "touched rows", &rows->sum);
}

void dt__rows_destroy(struct dt_reducer *x)
{
    if (!x->rows) return;
    struct dt__rows *rows = x->rows;
    void *owned[] = {rows->range,   rows->touched,     rows->part_touched,
                     rows->summed,  rows->part_vector, rows->part_first,
                     rows->replica, rows->head,        rows->end,
                     rows->holder,  rows->row,         rows->sum,
                     rows};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        dt_free(owned[i]);
}

static size_t list_bytes(const struct dt_row_range *range)
{
    return LINE + ((range->rows * sizeof(uint32_t) + LINE - 1) & ~(size_t)(LINE - 1));
}

/* Lists in `memory`, empty ones. */
static void lists_map(const struct dt__rows *rows, unsigned char *memory, struct dt_touched *out)
{
    for (int i = 0; i < rows->ranges; memory += list_bytes(&rows->range[i++])) {
        out[i] = (struct dt_touched){.row = (uint32_t *)(void *)(memory + LINE),
                                     .count = (uint32_t *)(void *)memory};
        *out[i].count = 0;
    }
}

size_t dt__rows_bytes(const struct dt_reducer *x)
{
    size_t bytes = 0;
    if (x->groups > 1 && x->exchange != DT_REDUCER_ORDERED) return 0;
    for (int i = 0; x->rows && i < x->rows->ranges; i++)
        bytes += list_bytes(&x->rows->range[i]);
    return bytes;
}

void dt__rows_map(struct dt_reducer *x, int replica, void *memory)
{
    struct dt__rows *rows = x->rows;
    if (!dt__rows_bytes(x)) return;
    lists_map(rows, memory, &rows->touched[replica * rows->ranges]);
    rows->all = (struct leaves){rows->touched,    x->slot, rows->replica,
                                x->spec.replicas, 0,       x->spec.replicas};
    rows->mapped = true;
}

bool dt__rows_part_has_room(const struct dt_reducer *x, int part)
{
    const struct dt__part *p = &x->part[part];
    return x->groups > 1 && dt__rows_bytes(x) &&
           (p->group != x->group_index || p->end - p->first > 1);
}

static size_t summed_bytes(const struct dt_reducer *x)
{
    return ((size_t)x->group_workers * sizeof(uint32_t) + LINE - 1) & ~(size_t)(LINE - 1);
}

size_t dt__rows_part_bytes(const struct dt_reducer *x)
{
    return x->rows ? dt__rows_bytes(x) + (size_t)x->rows->ranges * summed_bytes(x) : 0;
}

void dt__rows_map_part(struct dt_reducer *x, int part, float *vector, void *memory)
{
    struct dt__rows *rows = x->rows;
    if (!dt__rows_bytes(x) || x->groups == 1) return;
    const int first = x->part[part].first;
    rows->part_first[part] = first;
    rows->all = (struct leaves){
        rows->part_touched, rows->part_vector, rows->part_first, x->parts, 0, x->spec.replicas};
    rows->mapped = true;
    for (int i = 0; i < rows->ranges && !vector; i++)
        rows->part_touched[first * rows->ranges + i] = rows->touched[first * rows->ranges + i];
    rows->part_vector[first] = vector ? vector : x->slot[first];
    if (!vector) return;
    lists_map(rows, memory, &rows->part_touched[first * rows->ranges]);
    unsigned char *at = (unsigned char *)memory + dt__rows_bytes(x);
    for (int i = 0; i < rows->ranges; i++, at += summed_bytes(x))
        rows->summed[first * rows->ranges + i] = (uint32_t *)(void *)at;
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

static const struct dt_touched *list_of(const struct dt__rows *rows, const struct leaves *leaves,
                                        int leaf, int range)
{
    return &leaves->touched[leaf * rows->ranges + range];
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

/* The first row behind `share` of so many shares of the lists' entries. */
static uint32_t row_behind(const struct dt__rows *rows, const struct leaves *leaves, int range,
                           int share, int shares)
{
    uint64_t all = 0;
    uint32_t from = 0, to = (uint32_t)rows->range[range].rows;
    if (share == shares) return to;
    for (int l = 0; l < leaves->count; l++)
        all += *list_of(rows, leaves, leaves->leaf[l], range)->count;
    const uint64_t wanted = all * (uint64_t)share / (uint64_t)shares;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        uint64_t below = 0;
        for (int l = 0; l < leaves->count; l++)
            below += count_below(list_of(rows, leaves, leaves->leaf[l], range), middle);
        if (below < wanted)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The rows of a range that this worker updates: as many touched ones as the others', or as many
 * rows. A bank whose group has no worker updates all. */
static void rows_slice(const struct dt_reducer *x, int range, uint32_t *from, uint32_t *to)
{
    const struct dt__rows *rows = x->rows;
    const int workers = x->group_workers ? x->group_workers : 1,
              worker = x->group_workers ? x->worker : 0;
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
        const int leaf = leaves->leaf[l];
        const struct dt_touched *list = list_of(rows, leaves, leaf, range);
        const struct holder head = {leaf, count_below(list, from)};
        rows->end[leaf] = count_below(list, to);
        if (head.at < rows->end[leaf]) rows->head[rows->heads++] = head;
    }
}

/* The next row, with the leaves that have it, in order. */
static bool merge_next(struct dt__rows *rows, int range, uint32_t *out_row)
{
    const struct leaves *leaves = rows->leaves;
    uint32_t next = UINT32_MAX;
    if (!rows->heads) return false;
    for (int h = 0; h < rows->heads; h++) {
        const uint32_t row =
            list_of(rows, leaves, rows->head[h].leaf, range)->row[rows->head[h].at];
        if (row < next) next = row;
    }
    int heads = 0;
    rows->holders = 0;
    for (int h = 0; h < rows->heads; h++) {
        struct holder head = rows->head[h];
        if (list_of(rows, leaves, head.leaf, range)->row[head.at] == next)
            rows->holder[rows->holders++] = (struct holder){head.leaf, head.at++};
        if (head.at < rows->end[head.leaf]) rows->head[heads++] = head;
    }
    rows->heads = heads;
    *out_row = next;
    return true;
}

static float *holder_row(const struct dt__rows *rows, int range, struct holder holder)
{
    const struct dt_row_range *r = &rows->range[range];
    return rows->leaves->vector[holder.leaf] + r->offset + holder.at * r->width;
}

/* ---- sum ------------------------------------------------------------------------------------ */

/* to += from. Leaves that do not have the row are left out: they would add 0. */
static void row_add(size_t n, const float *from, float *restrict to)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* The sum over node [a, b) of floats [at, at + n) of the row at hand, whose holders there are
 * [first, last), one at least; scratch or a leaf's own place. */
static const float *sum_holders(const struct dt__rows *rows, int range, int first, int last, int a,
                                int b, size_t at, size_t n, float (*block)[DT__TREE_BLOCK])
{
    const struct holder *holder = rows->holder;
    if (last - first == 1) return holder_row(rows, range, holder[first]) + at;
    const int split = dt__tree_split(a, b);
    int middle = first;
    while (middle < last && holder[middle].leaf < split)
        middle++;
    if (middle == first) return sum_holders(rows, range, first, last, split, b, at, n, block);
    if (middle == last) return sum_holders(rows, range, first, last, a, split, at, n, block);
    const float *left = sum_holders(rows, range, first, middle, a, split, at, n, block);
    const float *right = sum_holders(rows, range, middle, last, split, b, at, n, block + 1);
    if (left != block[0]) memcpy(block[0], left, n * sizeof *left);
    row_add(n, right, block[0]);
    return block[0];
}

/* The sum of the row at hand. Where a leaf lacks it the whole gradient has +0, which makes +0 of
 * -0: at any node above it, so that it does not matter where in between this is done. */
static void row_sum(const struct dt_reducer *x, int range, float *out)
{
    const struct dt__rows *rows = x->rows;
    const size_t width = rows->range[range].width;
    const bool all = rows->holders == rows->leaves->count;
    for (size_t at = 0; at < width; at += DT__TREE_BLOCK) {
        const size_t n = width - at < DT__TREE_BLOCK ? width - at : DT__TREE_BLOCK;
        const float *sum = sum_holders(rows, range, 0, rows->holders, rows->leaves->first,
                                       rows->leaves->end, at, n, x->scratch->block);
        for (size_t i = 0; i < n; i++)
            out[at + i] = all ? sum[i] : sum[i] + 0.0f;
    }
}

void dt__rows_sum(struct dt_reducer *x)
{
    struct dt__rows *rows = x->rows;
    uint32_t from, to, row;
    for (int i = 0; i < rows->ranges; i++) {
        rows_slice(x, i, &from, &to);
        merge_begin(rows, &rows->all, i, from, to);
        while (merge_next(rows, i, &row))
            row_sum(x, i, holder_row(rows, i, rows->holder[0]));
    }
}

/* ---- several groups: sums of parts ---------------------------------------------------------- */

static bool range_is_in(const struct dt_reducer *x, int range, int bucket)
{
    const size_t offset = x->rows->range[range].offset;
    return dt__bucket_begin(x, bucket) <= offset && offset < x->bucket_end[bucket];
}

bool dt__rows_are_in(const struct dt_reducer *x, int bucket)
{
    for (int i = 0; dt__rows_are_touched(x) && i < x->rows->ranges; i++)
        if (range_is_in(x, i, bucket)) return true;
    return false;
}

static struct leaves part_leaves(const struct dt_reducer *x, const struct dt__part *part)
{
    const struct dt__rows *rows = x->rows;
    return (struct leaves){rows->touched,           x->slot,     rows->replica + part->first,
                           part->end - part->first, part->first, part->end};
}

/* This worker's share of the rows of a part. As nobody knows how many rows the others will have,
 * each writes to where its first row would be if all were touched. */
static void sum_part(struct dt_reducer *x, const struct dt__part *part, int range)
{
    struct dt__rows *rows = x->rows;
    const struct leaves leaves = part_leaves(x, part);
    const struct dt_row_range *r = &rows->range[range];
    const uint32_t from = row_behind(rows, &leaves, range, x->worker, x->group_workers);
    const uint32_t to = row_behind(rows, &leaves, range, x->worker + 1, x->group_workers);
    uint32_t *list = rows->part_touched[part->first * rows->ranges + range].row, row, at = from;
    merge_begin(rows, &leaves, range, from, to);
    for (; merge_next(rows, range, &row); at++) {
        row_sum(x, range, rows->part_vector[part->first] + r->offset + at * r->width);
        list[at] = row;
    }
    rows->summed[part->first * rows->ranges + range][x->worker] = at - from;
}

void dt__rows_sum_parts(struct dt_reducer *x, int bucket)
{
    for (int i = 0; dt__rows_are_touched(x) && i < x->rows->ranges; i++) {
        if (!range_is_in(x, i, bucket)) continue;
        for (int p = 0; p < x->parts; p++)
            if (x->part[p].group == x->group_index && dt__rows_part_has_room(x, p))
                sum_part(x, &x->part[p], i);
    }
}

struct dt_touched dt__rows_of_part(const struct dt_reducer *x, int part, int range,
                                   float **out_rows)
{
    const struct dt__rows *rows = x->rows;
    const int first = x->part[part].first;
    *out_rows = rows->part_vector[first] + rows->range[range].offset;
    return rows->part_touched[first * rows->ranges + range];
}

/* What the workers have summed of a part's range, brought together. */
static void close_part(const struct dt_reducer *x, int part, int range)
{
    const struct dt__rows *rows = x->rows;
    const size_t width = rows->range[range].width;
    const struct leaves leaves = part_leaves(x, &x->part[part]);
    float *values;
    const struct dt_touched list = dt__rows_of_part(x, part, range, &values);
    uint32_t count = 0;
    for (int w = 0; w < x->group_workers; w++) {
        const uint32_t from = row_behind(rows, &leaves, range, w, x->group_workers);
        const uint32_t n = rows->summed[leaves.first * rows->ranges + range][w];
        memmove(list.row + count, list.row + from, n * sizeof *list.row);
        memmove(values + count * width, values + from * width, n * width * sizeof *values);
        count += n;
    }
    *list.count = count;
}

void dt__rows_close_parts(struct dt_reducer *x)
{
    for (int p = 0; p < x->parts; p++) {
        if (x->part[p].group != x->group_index || !dt__rows_part_has_room(x, p)) continue;
        for (int i = 0; i < x->rows->ranges; i++)
            close_part(x, p, i);
    }
}

/* ---- norm ----------------------------------------------------------------------------------- */

/* Squares of a block under way. */
struct norm_lanes {
    double *norms;
    size_t block;
    double lane[8];
};

static void norm_close(struct norm_lanes *lanes)
{
    const double *lane = lanes->lane;
    lanes->norms[lanes->block] =
        ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    memset(lanes->lane, 0, sizeof lanes->lane);
}

/* Adds floats [offset, offset + n) of the sum, as far as they lie in [begin, end). */
static void norm_add(struct norm_lanes *lanes, size_t begin, size_t end, const float *sum,
                     size_t offset, size_t n)
{
    const size_t last = offset + n < end ? offset + n : end;
    for (size_t at = offset > begin ? offset : begin, stop; at < last; at = stop) {
        const size_t block = at / DT__TREE_BLOCK, behind = (block + 1) * DT__TREE_BLOCK;
        stop = last < behind ? last : behind;
        if (block != lanes->block) {
            norm_close(lanes);
            lanes->block = block;
        }
        for (size_t i = at; i < stop; i++) /* a block begins at a multiple of 8 */
            lanes->lane[i & 7] += (double)sum[i - offset] * (double)sum[i - offset];
    }
}

/* Where the sum of the row at hand stands: where dt__rows_sum left it, or else in `scratch`. */
static const float *row_total(const struct dt_reducer *x, int range, float *scratch)
{
    if (x->spec.norm && x->groups == 1) return holder_row(x->rows, range, x->rows->holder[0]);
    row_sum(x, range, scratch);
    return scratch;
}

/* Rows of [begin, end), the first and the last of which may lie there in part. */
static void norm_add_rows(struct dt_reducer *x, struct norm_lanes *lanes, int i, size_t begin,
                          size_t end)
{
    struct dt__rows *rows = x->rows;
    const struct dt_row_range *range = &rows->range[i];
    const size_t behind = range->offset + range->rows * range->width;
    const size_t from = begin > range->offset ? begin : range->offset;
    const size_t to = end < behind ? end : behind;
    uint32_t row;
    if (from >= to) return;
    merge_begin(rows, &rows->all, i, (uint32_t)((from - range->offset) / range->width),
                (uint32_t)((to - range->offset + range->width - 1) / range->width));
    while (merge_next(rows, i, &row))
        norm_add(lanes, begin, end, row_total(x, i, rows->sum), range->offset + row * range->width,
                 range->width);
}

void dt__rows_norm(struct dt_reducer *x, const float *sum, double *norms, size_t begin, size_t end)
{
    struct norm_lanes lanes = {.norms = norms, .block = begin / DT__TREE_BLOCK};
    size_t at = begin;
    end = end < x->spec.norm_params ? end : x->spec.norm_params;
    if (begin >= end) return;
    memset(norms + lanes.block, 0,
           ((end + DT__TREE_BLOCK - 1) / DT__TREE_BLOCK - lanes.block) * sizeof *norms);
    for (int i = 0; i < x->rows->ranges; i++) {
        const struct dt_row_range *range = &x->rows->range[i];
        if (range->offset > at) norm_add(&lanes, begin, end, sum + at, at, range->offset - at);
        norm_add_rows(x, &lanes, i, begin, end);
        const size_t behind = range->offset + range->rows * range->width;
        if (behind > at) at = behind;
    }
    if (end > at) norm_add(&lanes, begin, end, sum + at, at, end - at);
    norm_close(&lanes);
}

/* ---- update --------------------------------------------------------------------------------- */

/* The sum of the row at hand, to where updates read it. */
static void row_take(const struct dt_reducer *x, int range, float *to)
{
    const float *sum = row_total(x, range, to);
    if (sum != to) memcpy(to, sum, x->rows->range[range].width * sizeof *to);
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
    merge_begin(x->rows, &x->rows->all, i, from, to);
    if (x->rows->range[i].touched_alone)
        update_touched(x, i);
    else
        update_all(x, i, from, to);
}

void dt__rows_update_in_step(struct dt_reducer *x)
{
    for (int b = 0; b < x->spec.buckets; b++) {
        if (!dt__rows_are_in(x, b)) continue;
        for (int i = 0; i < x->rows->ranges; i++)
            if (range_is_in(x, i, b)) dt__rows_update(x, i);
        dt__event_post(&x->control->bucket[b].updated, 1);
    }
}
