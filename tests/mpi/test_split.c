/* The exchange of split layers: every row and column arrives where it belongs, on one node and with
 * each rank as a separate node. Fails if rows of another replica arrive, a part goes to the wrong
 * owner, a sum has another order, or a wait does not include all workers. */
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/split.h"
#include "mpi/expect.h"

enum { REPLICAS = 4, PARTS = 5, LAYERS = 3, MOST_ROWS = 23 };
static const struct dt_split_layer layers[LAYERS] = {
    {700, 37, false, false, 0}, {1100, 5, true, false, 0}, {600, 40, true, true, 0}};

static float value(int step, int layer, size_t row, size_t column)
{
    return (float)(step * 7919 + layer * 131 + (int)row * 4099 + (int)column);
}

/* Returns the first column that is exchanged for a part; for a softmax, columns are the floats that
 * each part reports about a row. */
static size_t part_begin(int layer, int part)
{
    if (layers[layer].softmax) return (size_t)part * sizeof(struct dt_softmax_part) / sizeof(float);
    return dt__split_cut(layers[layer].nout, (size_t)part, PARTS);
}

/* Returns what a part adds to the gradient of an input: floats whose sum depends on the order. */
static float addend(int part, size_t row, size_t column)
{
    static const float size[PARTS] = {1e8f, 1.0f, -1e8f, 3.0f, 1e-3f};
    return size[part] * (float)(1 + row + column % 7);
}

static void ignore(void *arg, const struct dt_update_info *info, size_t offset, size_t n,
                   const float *grad, float *const *vectors, float *out)
{
    (void)arg, (void)info, (void)offset, (void)vectors;
    memcpy(out, grad, n * sizeof *out);
}

static int ask_nothing(void *arg)
{
    (void)arg;
    return DT_ASK_NONE;
}

/* Writes, or checks, the rows of a part, a matrix of `width` columns. */
static void part_rows(float *part, int first, int end, size_t width, int step, int layer,
                      size_t column, bool write)
{
    for (size_t r = (size_t)first; r < (size_t)end; r++)
        for (size_t c = 0; c < width; c++)
            if (write)
                part[r * width + c] = value(step, layer, r, column + c);
            else
                EXPECT(part[r * width + c] == value(step, layer, r, column + c),
                       "step %d, layer %d: wrong value in row %zu, column %zu", step, layer, r,
                       column + c);
}

static void pass_inputs(struct dt_split *split, int step, int l, int first, int end)
{
    const size_t blocks = dt__split_blocks(layers[l].nin);
    for (int write = 1; write >= 0; write--) {
        for (size_t b = 0; b < blocks; b++) {
            const size_t begin = dt__split_cut(layers[l].nin, b, blocks);
            part_rows(dt__split_inputs(split, l, b), write ? first : 0,
                      write ? end : dt__split_rows(split),
                      dt__split_cut(layers[l].nin, b + 1, blocks) - begin, step, l, begin, write);
        }
        for (int r = write ? first : 0;
             r < (write ? end : dt__split_rows(split)) && layers[l].softmax; r++) {
            int32_t *label = dt__split_labels(split) + r;
            if (write)
                *label = 100 * step + r;
            else
                EXPECT(*label == 100 * step + r, "step %d: wrong label of row %d", step, r);
        }
        if (write) dt__split_give_inputs(split, l);
    }
}

/* home: each owner has all rows of its part, and workers get their rows; else workers have their
 * rows, and owners get all. */
static void pass_outputs(struct dt_split *split, const struct dt_world *world, int step, int l,
                         int first, int end, bool home)
{
    for (int write = 1; write >= 0; write--) {
        for (int p = 0; p < PARTS; p++) {
            const size_t begin = part_begin(l, p), width = part_begin(l, p + 1) - begin;
            const bool all = home == (write != 0);
            if (all && dt__split_owner(split, p) != world->worker) continue;
            part_rows(dt__split_outputs(split, l, p), all ? 0 : first,
                      all ? dt__split_rows(split) : end, width, step + home, l, begin, write);
        }
        if (write) dt__split_move_outputs(split, l, home);
    }
}

static void pass_sums(struct dt_split *split, int l, int first, int end)
{
    const size_t nin = layers[l].nin, blocks = dt__split_blocks(nin);
    int begin, stop;
    for (int i = 0; dt__split_partial(split, i, &begin, &stop); i++)
        for (size_t b = 0; b < blocks; b++) {
            const size_t at = dt__split_cut(nin, b, blocks);
            const size_t width = dt__split_cut(nin, b + 1, blocks) - at;
            for (size_t r = 0; r < (size_t)dt__split_rows(split); r++)
                for (size_t c = 0; c < width; c++) {
                    float part[PARTS];
                    for (int p = 0; p < PARTS; p++)
                        part[p] = addend(p, r, at + c);
                    /* partial sums of five leaves: 0-1, 2-3, 0-3, and single leaves */
                    float sum = part[begin];
                    if (stop - begin >= 2) sum = part[begin] + part[begin + 1];
                    if (stop - begin >= 4) sum = sum + (part[2] + part[3]);
                    if (stop - begin == 5) sum = sum + part[4];
                    dt__split_sum(split, l, i, b)[r * width + c] = sum;
                }
        }
    dt__split_return_sums(split, l);
    float *rows = malloc((size_t)(end - first + 1) * nin * sizeof *rows);
    if (!rows) abort();
    dt__split_read_sums(split, l, first, end - first, rows);
    for (size_t r = 0; r < (size_t)(end - first); r++)
        for (size_t c = 0; c < nin; c++) {
            const size_t row = (size_t)first + r;
            const float want = ((addend(0, row, c) + addend(1, row, c)) +
                                (addend(2, row, c) + addend(3, row, c))) +
                               addend(4, row, c);
            EXPECT(rows[r * nin + c] == want, "sum of row %zu, input %zu: %g, not %g", row, c,
                   (double)rows[r * nin + c], (double)want);
        }
    free(rows);
}

static struct dt_exchange_times times; /* not read here */

static void test_exchange(struct dt_world *world, int kind)
{
    static const int rows[3][REPLICAS] = {{3, 0, 7, 5}, {0, 0, 0, 1}, {6, 6, 6, 5}};
    const size_t ends[] = {8};
    const struct dt_exchange_spec spec = {.kind = kind,
                                          .params = 8,
                                          .times = &times,
                                          .buckets = 1,
                                          .bucket_end = ends,
                                          .replicas = REPLICAS,
                                          .vectors = 1,
                                          .update = ignore};
    const struct dt_split_spec split_spec = {PARTS, REPLICAS, layers, LAYERS, MOST_ROWS};
    struct dt_exchange *exchange;
    struct dt_split *split;
    int replica, replicas;
    EXPECT(!dt__exchange_create(world, &spec, &exchange), "%s", dt_error_text());
    EXPECT(!dt__split_create(exchange, &split_spec, &split), "%s", dt_error_text());
    for (int step = 0; step < 30 && world->is_worker; step++) {
        dt__replicas_assign(world->workers, world->worker, REPLICAS, &replica, &replicas);
        dt__exchange_begin(exchange, (uint64_t)step);
        dt__split_begin(split, rows[step % 3]);
        const int first = dt__split_row(split, replica);
        const int end = dt__split_row(split, replica + replicas);
        for (int l = 0; l < LAYERS; l++) {
            pass_inputs(split, step, l, first, end);
            pass_outputs(split, world, step, l, first, end, true);
        }
        for (int l = LAYERS - 1; l >= 0; l--) {
            pass_outputs(split, world, step, l, first, end, false);
            if (layers[l].inputs) pass_sums(split, l, first, end);
        }
        if (replicas) memset(dt__exchange_slot(exchange, replica).grad, 0, 8 * sizeof(float));
        dt__exchange_ready(exchange, 0);
        dt__exchange_end(exchange, DT_ASK_NONE);
    }
    uint64_t step;
    if (world->is_worker) dt__exchange_settle(exchange);
    if (!world->is_worker) dt__exchange_serve_span(exchange, 0, 30, ask_nothing, NULL, &step);
    dt__split_destroy(split);
    dt__exchange_destroy(exchange);
}

int main(void)
{
    struct dt_world *world;
    if (dt_world_create(&world)) return 1;
    dt__world_set_roles(world, false);
    test_exchange(world, DT_EXCHANGE_NODE);
    test_exchange(world, DT_EXCHANGE_REDUCE); /* each rank is a separate node */
    const int rank = world->rank;
    dt_world_destroy(world);
    if (rank == 0) printf("%s\n", failures ? "failed" : "ok");
    return failures != 0;
}
