/* Touched rows: a node's lists of them, the sums of their gradients, and their update.
 *
 * Each replica lists the rows that its batch touched, in rising order, and its slot has their
 * gradients in the same order. A sum over replicas is a k-way merge of such lists. A cursor moves
 * along each list; the smallest row under any cursor is the next row, and the cursors at that row
 * are its matches. Their values are added in the order of the fixed tree.
 *
 * On several nodes, rows are distributed to owners (rows.h has the figure). The second half of the
 * file assigns rows to owners, packs sums for owners on other nodes, and finds the addresses of the
 * weights that these return; rows_exchange.c sends the messages. */
#include "comm/rows.h"

#include <string.h>

#include "base/bf16.h"
#include "base/clones.h"
#include "comm/exchange.h"

/* A leaf of the sum: a replica, or a partial sum received from another node. */
struct leaf {
    int first;               /* first replica of the leaf */
    struct dt_touched *list; /* (ranges) the rows that the leaf has of each range */
    /* (ranges) the gradients of these rows, contiguous */
    struct values {
        const float *floats;
        const uint16_t *rounded; /* bf16, as received; NULL: the values are in `floats` */
    } * values;
};

/* The leaves of one merge. */
struct leaves {
    const struct leaf *leaf; /* (count) in the order of their first replicas */
    int count;
    int a, b; /* the range of the tree that the leaves cover */
};

/* A merge's position in the list of one leaf. */
struct cursor {
    const struct leaf *leaf;
    const uint32_t *row; /* the next row */
    const uint32_t *end; /* the merge's end in this list */
};

struct dt__rows {
    struct dt_row_range *range; /* (ranges) copied */
    int ranges;
    struct leaf *replica; /* (R) */
    struct leaf *leaf;    /* (R) distributed rows: this node's replicas, and other nodes' partial
                           * sums */
    struct leaves all;    /* the leaves of the whole sum: in `replica`, or in `leaf` */

    /* Distributed rows. */
    size_t inputs;          /* number of inputs of the network that have rows */
    struct dt_touched edge; /* (edges) norm blocks that several agents share */
    uint32_t edges;
    struct dt_touched *needs; /* (workers of this node) inputs that each will read next */
    struct leaf *reader;      /* (workers of this node) `needs`, as lists to merge */
    struct dt_touched pulled; /* the merged `needs`: inputs whose weights this node has */
    uint32_t pulled_count;
    float **table; /* (ranges, vectors) the rows that this agent owns */

    /* The pending merge. */
    const struct leaves *leaves;
    struct cursor *cursor; /* (lists) cursors that are not at their end */
    struct cursor *match;  /* (lists) cursors at the current row */
    int cursors, matches;

    size_t block;  /* floats in `sum`: a block, or the widest row */
    float *sum;    /* (block) sums of several rows, contiguous */
    uint32_t *row; /* (block) the numbers of these rows */
};

/* ---- create --------------------------------------------------------------------------------- */

dt_status dt__rows_check(const struct dt_row_range *range, int count, size_t params)
{
    size_t previous_end = 0, floats, inputs;
    for (int i = 0; i < count; i++, range++)
        if (range->offset < previous_end || !dt__size_add(range->first, range->rows, &inputs) ||
            inputs > UINT32_MAX || !dt__size_mul(range->rows, range->width, &floats) || !floats ||
            !dt__size_add(range->offset, floats, &previous_end) || previous_end > params)
            return dt_fail(DT_EUSAGE,
                           "range %d of rows does not begin after the end of the one before", i);
    return DT_OK;
}

dt_status dt__rows_create(struct dt_exchange *x, struct dt__layout *layout)
{
    const size_t replicas = (size_t)x->spec.replicas, ranges = (size_t)x->spec.row_ranges;
    struct dt_touched *list; /* (R, ranges) */
    struct values *values;   /* (R, ranges) */
    DT_TRY(DT__ARENA_ALLOC(&x->arena, "touched rows", DT__TABLE(x->rows, 1)));
    struct dt__rows *rows = x->rows;
    rows->ranges = (int)ranges;
    rows->block = DT__TREE_BLOCK;
    DT_TRY(DT__ARENA_ALLOC(&x->arena, "touched rows", DT__TABLE(rows->range, ranges)));
    memcpy(rows->range, x->spec.row_range, ranges * sizeof *rows->range);
    x->spec.row_range = rows->range;
    for (size_t i = 0, b = 0; i < ranges; i++) {
        struct dt_row_range *range = &rows->range[i];
        while (layout->bucket[b].at.end <= range->offset)
            b++;
        if (range->offset + range->rows * range->width > layout->bucket[b].at.end)
            return dt_fail(DT_EUSAGE, "range %zu of rows reaches over a bucket's end", i);
        if (!range->most || range->most > range->rows) range->most = range->rows;
        if (range->width > rows->block) rows->block = range->width;
        if (range->first + range->rows > rows->inputs) rows->inputs = range->first + range->rows;
    }
    if (!x->spec.most_inputs || x->spec.most_inputs > rows->inputs)
        x->spec.most_inputs = rows->inputs;
    const size_t lists = replicas + (size_t)x->world->workers; /* upper bound on lists in a merge */
    DT_TRY(DT__ARENA_ALLOC(&x->arena, "touched rows", DT__TABLE(list, replicas * ranges),
                           DT__TABLE(values, replicas * ranges), DT__TABLE(rows->replica, replicas),
                           DT__TABLE(rows->leaf, replicas), DT__TABLE(rows->cursor, lists),
                           DT__TABLE(rows->match, lists), DT__TABLE(rows->row, rows->block),
                           DT__TABLE(rows->sum, rows->block)));
    for (int r = 0; r < x->spec.replicas; r++)
        rows->replica[r] = (struct leaf){r, list + r * rows->ranges, values + r * rows->ranges};
    return DT_OK;
}

const struct dt_touched *dt__rows_touched(const struct dt_exchange *x, int replica)
{
    return x->rows ? x->rows->replica[replica].list : NULL;
}

/* ---- owners --------------------------------------------------------------------------------- */

uint32_t dt__rows_first_input(const struct dt_exchange *x, int owner)
{
    if (owner == x->topo->owners) return (uint32_t)x->rows->inputs;
    const int node = x->topo->node_at[x->topo->agent_rank[owner]];
    const uint64_t agents = (uint64_t)dt__agents(x->topo, node);
    const uint64_t place = (uint64_t)node * agents + (uint64_t)(owner - x->topo->agents_of[node]);
    return (uint32_t)(x->rows->inputs * place / ((uint64_t)x->topo->nodes * agents));
}

/* Returns the first row of an owner in a range. */
static uint32_t first_row(const struct dt_exchange *x, int owner, int i)
{
    const struct dt_row_range *range = &x->rows->range[i];
    const size_t input = dt__rows_first_input(x, owner);
    const size_t row = input > range->first ? input - range->first : 0;
    return (uint32_t)(row < range->rows ? row : range->rows);
}

struct dt__indices dt__rows_of_owner(const struct dt_exchange *x, int owner, int i)
{
    return (struct dt__indices){first_row(x, owner, i), first_row(x, owner + 1, i)};
}

struct dt__floats dt__rows_own(const struct dt_exchange *x, int i)
{
    const struct dt_row_range *range = &x->rows->range[i];
    const struct dt__indices own = dt__rows_of_owner(x, x->topo->owner, i);
    return (struct dt__floats){range->offset + own.begin * range->width,
                               range->offset + own.end * range->width};
}

/* Finds the norm blocks that have rows of several owners, or rows and other floats: an owner's
 * first row may lie inside a block. */
static void find_edges(const struct dt_exchange *x)
{
    struct dt__rows *rows = x->rows;
    for (int i = 0; i < rows->ranges; i++)
        for (int owner = 0; owner <= x->topo->owners; owner++) {
            const struct dt_row_range *range = &rows->range[i];
            const size_t at = range->offset + first_row(x, owner, i) * range->width;
            const size_t block = at / DT__TREE_BLOCK;
            if (at % DT__TREE_BLOCK == 0 || at >= x->spec.norm.params) continue;
            if (rows->edges && rows->edge.row[rows->edges - 1] == block) continue;
            rows->edge.row[rows->edges++] = (uint32_t)block;
        }
}

size_t dt__rows_most_pulled(const struct dt_exchange *x, int node)
{
    const size_t most = (size_t)dt__agents(x->topo, node) * x->spec.most_inputs;
    return most < x->rows->inputs ? most : x->rows->inputs;
}

dt_status dt__rows_distribute(struct dt_exchange *x, struct dt__layout *layout)
{
    DT_TRY(dt__rows_create(x, layout));
    struct dt__rows *rows = x->rows;
    const size_t most = dt__rows_most_pulled(x, x->topo->node), agents = (size_t)x->topo->agents;
    const size_t edges = (size_t)(rows->ranges * (x->topo->owners + 1));
    DT_TRY(DT__ARENA_ALLOC(&x->arena, "touched rows", DT__TABLE(rows->edge.row, edges),
                           DT__TABLE(rows->needs, agents), DT__TABLE(rows->reader, agents),
                           DT__TABLE(rows->pulled.row, most)));
    rows->edge.count = &rows->edges;
    rows->pulled.count = &rows->pulled_count;
    find_edges(x);
    layout->edge = rows->edges ? &rows->edge : NULL;
    return DT_OK;
}

/* ---- memory of the node --------------------------------------------------------------------- */

/* Takes memory for an empty list with capacity for `most` rows. */
static struct dt_touched list_take(struct dt__shm *shm, size_t most)
{
    struct dt_touched list;
    list.count = dt__shm_take(shm, 1, sizeof *list.count);
    list.row = dt__shm_take(shm, most, sizeof *list.row);
    if (list.count) *list.count = 0;
    return list;
}

size_t dt__rows_bytes(const struct dt_exchange *x, const struct dt__range *range, enum dt__use use)
{
    const struct dt_row_range *table = &x->rows->range[range->index];
    const size_t pulled = dt__rows_most_pulled(x, x->topo->node);
    const size_t most = use == DT__GRADIENT ? table->most : use == DT__WEIGHTS ? pulled : 0;
    return (most < table->rows ? most : table->rows) * table->width * sizeof(float);
}

void dt__rows_map(const struct dt_exchange *x, struct dt__node_memory *memory, int replica,
                  struct dt__shm *shm)
{
    struct dt__rows *rows = x->rows;
    struct leaf *leaf = &rows->replica[replica];
    rows->all = (struct leaves){rows->replica, x->spec.replicas, 0, x->spec.replicas};
    for (int i = 0; i < rows->ranges; i++) {
        leaf->list[i] = list_take(shm, rows->range[i].most);
        leaf->values[i].floats = memory->slot[replica] + rows->range[i].offset;
    }
}

void dt__rows_map_needs(const struct dt_exchange *x, struct dt__node_memory *memory,
                        struct dt__shm *shm)
{
    (void)memory;
    for (int w = 0; w < x->topo->workers; w++) {
        x->rows->needs[w] = list_take(shm, x->spec.most_inputs);
        x->rows->reader[w].list = &x->rows->needs[w];
    }
}

const struct dt_touched *dt__exchange_needs(const struct dt_exchange *x)
{
    return x->rows && x->rows->needs ? &x->rows->needs[x->topo->agent] : NULL;
}

const struct dt_touched *dt__exchange_inputs(const struct dt_exchange *x)
{
    return x->rows && x->rows->needs ? &x->rows->pulled : NULL;
}

/* ---- merge ---------------------------------------------------------------------------------- */

/* For one node: returns the first row of a range that agent `agent` updates, or for agent == agents
 * the end of the rows. Agents get equal numbers of touched rows if only these are updated,
 * otherwise equal numbers of rows. */
static uint32_t slice_begin(const struct dt_exchange *x, int range, int agent)
{
    const struct leaves *leaves = &x->rows->all;
    const uint64_t number = (uint64_t)agent, agents = (uint64_t)x->topo->agents;
    const uint64_t rows = x->rows->range[range].rows;
    uint64_t all = 0;
    uint32_t from = 0, to = (uint32_t)rows;
    if (number == agents || !x->rows->range[range].touched_alone)
        return (uint32_t)(rows * number / agents);
    for (int l = 0; l < leaves->count; l++)
        all += *leaves->leaf[l].list[range].count;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        uint64_t below = 0;
        for (int l = 0; l < leaves->count; l++)
            below += dt__touched_below(&leaves->leaf[l].list[range], middle);
        if (below < all * number / agents)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Starts to merge the leaves' lists, for the rows `of` of a range. */
static void merge_begin(struct dt__rows *rows, const struct leaves *leaves, int range,
                        struct dt__indices of)
{
    rows->leaves = leaves;
    rows->cursors = 0;
    for (int l = 0; l < leaves->count; l++) {
        const struct leaf *leaf = &leaves->leaf[l];
        const struct dt_touched *list = &leaf->list[range];
        const uint32_t begin = dt__touched_below(list, of.begin);
        const uint32_t end = dt__touched_below(list, of.end);
        if (begin < end)
            rows->cursor[rows->cursors++] =
                (struct cursor){leaf, list->row + begin, list->row + end};
    }
}

/* Moves to the next row, and finds the leaves that have it. Returns false if no row is left. */
static bool merge_next(struct dt__rows *rows, uint32_t *out_row)
{
    uint32_t next = UINT32_MAX;
    if (!rows->cursors) return false;
    for (int c = 0; c < rows->cursors; c++)
        if (*rows->cursor[c].row < next) next = *rows->cursor[c].row;
    int cursors = 0;
    rows->matches = 0;
    for (int c = 0; c < rows->cursors; c++) {
        struct cursor cursor = rows->cursor[c];
        if (*cursor.row == next) {
            rows->match[rows->matches++] = cursor;
            cursor.row++;
        }
        if (cursor.row < cursor.end) rows->cursor[cursors++] = cursor;
    }
    rows->cursors = cursors;
    *out_row = next;
    return true;
}

/* ---- sum ------------------------------------------------------------------------------------ */

/* Rounds a group's sum to bf16. Adding 0 turns -0 into +0, as a leaf without the row would. */
DT__CLONES
static void sum_round(size_t n, const float *values, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = dt__bf16_value(dt__bf16_of(values[i])) + 0.0f;
}

/* Floats [at, at + n) of a row of a range. */
struct row_part {
    int range;
    size_t at, n;
};

/* Returns the part's floats of the matched row from one leaf: their address, or out (n), into which
 * rounded floats are read. */
static const float *match_read(const struct dt__rows *rows, const struct row_part *part,
                               struct cursor match, float *out)
{
    const struct values *values = &match.leaf->values[part->range];
    const size_t row = (size_t)(match.row - match.leaf->list[part->range].row);
    const size_t at = row * rows->range[part->range].width + part->at;
    if (!values->rounded) return values->floats + at;
    dt__wire_read(DT_WIRE_BF16, 0, part->n, (const unsigned char *)(values->rounded + at), out);
    return out;
}

/* Returns the sum of the part's floats over range [a, b) of the tree. matches [first, last), at
 * least one, are the leaves in this range that have the row; other leaves would add 0, and are
 * skipped. The result is in block[0], or is the values of a single leaf. */
static const float *sum_matches(const struct dt_exchange *x, const struct row_part *part, int first,
                                int last, int a, int b, float (*block)[DT__TREE_BLOCK])
{
    const struct cursor *match = x->rows->match;
    const float *sum = block[0];
    if (last - first == 1 && x->topo->group_of[a] == x->topo->group_of[b - 1]) {
        sum = match_read(x->rows, part, match[first], block[0]);
    } else {
        const int split = dt__replicas_split(x->topo, a, b);
        int middle = first;
        while (middle < last && match[middle].leaf->first < split)
            middle++;
        if (middle == first) {
            sum = sum_matches(x, part, first, last, split, b, block);
        } else if (middle == last) {
            sum = sum_matches(x, part, first, last, a, split, block);
        } else {
            const float *left = sum_matches(x, part, first, middle, a, split, block);
            const float *right = sum_matches(x, part, middle, last, split, b, block + 1);
            dt__floats_add(part->n, left, right, block[0]);
        }
    }
    if (!x->errors || !dt__is_group(x->topo, a, b)) return sum;
    sum_round(part->n, sum, block[0]);
    return block[0];
}

/* Sums the current row, with the bits that the sum of whole gradients would have. In that sum a
 * leaf without this row has +0, which turns a sum of -0 into +0. The result does not depend on the
 * level of the tree at which this happens, so here it is done once, at the end. */
static void row_sum(const struct dt_exchange *x, int range, float *out)
{
    const struct dt__rows *rows = x->rows;
    const struct leaves *leaves = rows->leaves;
    const size_t width = rows->range[range].width;
    const bool all = rows->matches == leaves->count;
    for (size_t at = 0; at < width; at += DT__TREE_BLOCK) {
        const size_t n = width - at < DT__TREE_BLOCK ? width - at : DT__TREE_BLOCK;
        const struct row_part part = {range, at, n};
        const float *sum =
            sum_matches(x, &part, 0, rows->matches, leaves->a, leaves->b, x->scratch.block);
        for (size_t i = 0; i < n; i++)
            out[at + i] = all ? sum[i] : sum[i] + 0.0f;
    }
}

/* ---- distributed rows: what nodes and owners send each other --------------------------------- */

/* The leaves of the whole sum are this node's replicas and the other nodes' partial sums, in the
 * order of the tree. A received partial sum uses the entry of its first replica. */
dt_status dt__rows_own_tables(struct dt_exchange *x)
{
    struct dt__rows *rows = x->rows;
    const size_t tables = (size_t)(rows->ranges * x->spec.vectors);
    int leaves = 0;
    for (int r = 0; r < x->spec.replicas; r++)
        if (x->topo->node_of[r] == x->topo->node || x->topo->partial_at[r] >= 0)
            rows->leaf[leaves++] = rows->replica[r];
    rows->all = (struct leaves){rows->leaf, leaves, 0, x->spec.replicas};
    DT_TRY(DT__ARENA_ALLOC(&x->arena, "rows", DT__TABLE(rows->table, tables)));
    for (int i = 0; i < rows->ranges; i++) {
        const struct dt__floats own = dt__rows_own(x, i);
        for (int v = 0; v < dt__rows_vectors(x); v++)
            DT_TRY(DT__ARENA_ALLOC(
                &x->arena, "rows of a table",
                DT__TABLE(rows->table[i * x->spec.vectors + v], own.end - own.begin)));
    }
    return DT_OK;
}

float *dt__rows_table(const struct dt_exchange *x, int range, int vector)
{
    return x->rows->table[range * x->spec.vectors + vector];
}

int dt__rows_vectors(const struct dt_exchange *x)
{
    return x->spec.vectors - (x->errors > 0);
}

/* Returns whether a node sends one of its partial sums rounded. */
static bool is_sent_rounded(const struct dt_exchange *x, int partial)
{
    return x->errors && x->topo->partial[partial].covers_group;
}

/* Returns how many floats of a message these sums take. */
static size_t sent_floats(const struct dt_exchange *x, int partial, size_t sums)
{
    return is_sent_rounded(x, partial) ? (sums + 1) / 2 : sums;
}

unsigned char *dt__rows_pack(struct dt_exchange *x, int s, int range, struct dt__indices of,
                             unsigned char *out)
{
    struct dt__rows *rows = x->rows;
    const struct dt__partial_sum *partial = &x->topo->partial[s];
    const size_t width = rows->range[range].width;
    const struct leaves leaves = {rows->replica + partial->first, partial->end - partial->first,
                                  partial->first, partial->end};
    uint32_t *count = (uint32_t *)(void *)out, *row = count + 1;
    *count = 0;
    merge_begin(rows, &leaves, range, of);
    while (merge_next(rows, &row[*count]))
        ++*count;
    float *floats = (float *)(void *)(row + *count);
    uint16_t *rounded = is_sent_rounded(x, s) ? (uint16_t *)(void *)floats : NULL;
    merge_begin(rows, &leaves, range, of);
    for (uint32_t i = 0, next; merge_next(rows, &next); i++) {
        row_sum(x, range, rounded ? rows->sum : floats + i * width);
        if (rounded) dt__bf16_round(width, rows->sum, rounded + i * width);
    }
    return (unsigned char *)(floats + sent_floats(x, s, *count * width));
}

unsigned char *dt__rows_map_packed(struct dt_exchange *x, int s, int range, unsigned char *bytes)
{
    const struct leaf *leaf = &x->rows->replica[x->topo->partial[s].first];
    uint32_t *count = (uint32_t *)(void *)bytes, *row = count + 1;
    float *floats = (float *)(void *)(row + *count);
    leaf->list[range] = (struct dt_touched){row, count};
    leaf->values[range].floats = floats;
    leaf->values[range].rounded = is_sent_rounded(x, s) ? (uint16_t *)(void *)floats : NULL;
    return (unsigned char *)(floats + sent_floats(x, s, *count * x->rows->range[range].width));
}

void dt__rows_merge_needs(struct dt_exchange *x)
{
    struct dt__rows *rows = x->rows;
    const struct leaves leaves = {.leaf = rows->reader, .count = x->topo->workers};
    uint32_t *count = rows->pulled.count;
    *count = 0;
    merge_begin(rows, &leaves, 0, (struct dt__indices){0, UINT32_MAX});
    while (merge_next(rows, &rows->pulled.row[*count]))
        ++*count;
}

struct dt__indices dt__rows_pulled_of(const struct dt_exchange *x, int owner)
{
    const struct dt_touched *pulled = &x->rows->pulled;
    return (struct dt__indices){dt__touched_below(pulled, dt__rows_first_input(x, owner)),
                                dt__touched_below(pulled, dt__rows_first_input(x, owner + 1))};
}

/* A worker that reads a row of the range also reads all inputs below the range's first one (struct
 * dt_row_range). So these inputs are the first entries of the list, and those with rows of the
 * range follow:
 *
 *   first = 3   pulled   0  1  2  3  7  9 ...
 *               rows              0  4  6        at offset + 0, + width, + 2 width */
float *dt__rows_pulled_at(const struct dt_exchange *x, int i, struct dt__indices inputs,
                          size_t *out_floats)
{
    const struct dt_row_range *range = &x->rows->range[i];
    const uint32_t first = (uint32_t)range->first;
    const uint32_t after = dt__touched_below(&x->rows->pulled, first + (uint32_t)range->rows);
    const uint32_t begin = inputs.begin > first ? inputs.begin : first;
    const uint32_t end = inputs.end < after ? inputs.end : after;
    *out_floats = begin < end ? (end - begin) * range->width : 0;
    return x->memory->vectors[0] + range->offset + (begin - first) * range->width;
}

size_t dt__rows_read_weights(const struct dt_exchange *x, int i, const uint32_t *input,
                             uint32_t count, float *out)
{
    const struct dt_row_range *range = &x->rows->range[i];
    const struct dt__floats own = dt__rows_own(x, i);
    const float *table = dt__rows_table(x, i, 0);
    size_t floats = 0;
    for (uint32_t k = 0; k < count; k++) {
        if (input[k] < range->first || input[k] >= range->first + range->rows) continue;
        const size_t at = range->offset + (input[k] - range->first) * range->width;
        memcpy(out + floats, table + (at - own.begin), range->width * sizeof *out);
        floats += range->width;
    }
    return floats;
}

/* ---- norm and update ------------------------------------------------------------------------ */

/* Untouched rows count as 0. */
void dt__rows_squares(struct dt_exchange *x, const struct dt__range *of_range,
                      struct dt__floats floats, struct dt__norm *norm)
{
    const int i = of_range->index;
    struct dt__rows *rows = x->rows;
    const struct dt_row_range *range = &rows->range[i];
    const struct dt__floats at = dt__clip(dt__clip(of_range->at, floats), norm->at);
    if (at.begin == at.end) return;
    const struct dt__indices of = {
        (uint32_t)((at.begin - range->offset) / range->width),
        (uint32_t)((at.end - range->offset + range->width - 1) / range->width)};
    uint32_t row;
    norm->at = at;
    for (struct dt__floats block = dt__block_at(at, at.begin); block.begin < block.end;
         block = dt__block_at(at, block.end)) {
        double *squares = dt__edge_squares(norm, block.begin / DT__TREE_BLOCK);
        const size_t n = block.end - block.begin;
        if (squares)
            memset(squares + block.begin % DT__TREE_BLOCK, 0, n * sizeof *squares);
        else
            norm->norms[block.begin / DT__TREE_BLOCK] = 0;
    }
    merge_begin(rows, &rows->all, i, of);
    while (merge_next(rows, &row)) {
        row_sum(x, i, rows->sum);
        dt__norm_add(norm, rows->sum, range->offset + row * range->width, range->width);
    }
}

/* Sums and updates several rows at a time, so that their sums stay in the cache. */
void dt__rows_update(struct dt_exchange *x, int i, struct dt__indices of, float *const *vectors)
{
    struct dt__rows *rows = x->rows;
    const struct dt_row_range *range = &rows->range[i];
    const size_t most = rows->block / range->width, width = range->width;
    uint32_t row = 0;
    merge_begin(rows, &rows->all, i, of);
    bool more = merge_next(rows, &row);
    while (range->touched_alone && more) {
        size_t count = 0;
        for (; more && count < most; more = merge_next(rows, &row)) {
            row_sum(x, i, rows->sum + count * width);
            rows->row[count++] = row;
        }
        x->spec.update_rows(x->spec.arg, &x->step->info, range, rows->row, count, rows->sum,
                            vectors);
    }
    /* untouched rows have a gradient of 0 */
    for (uint32_t from = of.begin, end; !range->touched_alone && from < of.end; from = end) {
        end = of.end - from < most ? of.end : from + (uint32_t)most;
        const size_t n = (end - from) * width, at = range->offset + from * width;
        memset(rows->sum, 0, n * sizeof *rows->sum);
        for (; more && row < end; more = merge_next(rows, &row))
            row_sum(x, i, rows->sum + (row - from) * width);
        x->spec.update(x->spec.arg, &x->step->info, at, n, rows->sum, vectors, vectors[0] + at);
    }
}

/* ---- touched rows, a kind of range on one node ---------------------------------------------- */

bool dt__rows_range(const struct dt_exchange *x, int index, struct dt__floats *out)
{
    if (index >= x->spec.row_ranges) return false;
    const struct dt_row_range *range = &x->spec.row_range[index];
    *out = (struct dt__floats){range->offset, range->offset + range->rows * range->width};
    return true;
}

static uint32_t touched_update(struct dt_exchange *x, const struct dt__range *range)
{
    const struct dt__indices own = {slice_begin(x, range->index, x->topo->agent),
                                    slice_begin(x, range->index, x->topo->agent + 1)};
    dt__rows_update(x, range->index, own, x->memory->vectors);
    return 1;
}

const struct dt__kind dt__touched_kind = {
    .range = dt__rows_range,
    .by_agents = true,
    .reserve = dt__rows_create,
    .map_replica = dt__rows_map,
    .move = dt__whole_move,
    .squares = dt__rows_squares,
    .update = touched_update,
};
