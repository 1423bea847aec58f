/* Split layers: messages of activations, and of gradients by them, between the workers that have
 * rows and the workers that have columns (comm/split.h has the figure). A node's workers share one
 * copy of each. A worker sends what other nodes lack directly to their workers; all messages of a
 * move are in flight at once. */
#include "comm/split.h"

#include <string.h>

#include "comm/exchange.h"

enum { MOST_DEPTH = 11 }; /* of the tree of parts */
/* Floats that are sent for each row and part, in place of the part's outputs. */
enum { SOFTMAX = sizeof(struct dt_softmax_part) / sizeof(float) };
_Static_assert(DT_SPLIT_MOST_PARTS <= 1 << (MOST_DEPTH - 1), "a row a level");

/* A worker: its rank in the exchange, its node, its replicas and parts. */
struct place {
    int rank, node;
    int replica, replica_end;
    int part, part_end;
};

/* A node of the tree over parts whose parts all belong to one node or, on this node, to one worker.
 * Its sum is in this node's memory; other nodes receive rows of the sums of the whole node. */
struct sum {
    int first, end;
    int worker; /* -1: the sum of a whole node */
    int node;
    float *data; /* (max_rows, nin) in blocks, of the current layer */
};

struct dt_split {
    struct dt__arena *arena;
    struct dt_exchange *x;
    struct dt_split_spec spec;
    struct dt_split_layer *layer; /* (layers), copied */
    struct place *worker;         /* (world->workers) */
    int self;                     /* this rank's worker number; -1: not a worker */
    int *owner;                   /* (parts) the worker that owns each part */
    struct sum *sum;              /* (sums) in the order of the parts; on this node each is one
                                   * worker's */
    int *sum_at;                  /* (parts) the sum that starts with this part */
    struct sum *give;             /* (gives) sums of this whole node, which it sends to other
                                   * nodes */
    int sums, gives;

    struct dt__shared shared;
    struct dt__event_count *met; /* workers of this node that have arrived at the meeting */
    uint32_t meetings;
    float **input, **output; /* (layers) */
    int32_t *label;          /* (max_rows); NULL: no layer has a softmax */

    int *row;    /* (R + 1) first row of each replica, in this step */
    float *send; /* (this node's gives, max_rows, widest input) for other nodes */
    int left;    /* messages in flight */
};

/* ---- rows and parts of workers -------------------------------------------------------------- */

static void list_workers(struct dt_split *s)
{
    const struct dt_world *world = s->x->world;
    for (int w = 0; w < world->workers; w++) {
        const int rank = world->worker_rank + w;
        struct place *place = &s->worker[w];
        *place = (struct place){.rank = rank, .node = s->x->topo->node_at[rank]};
        dt__replicas_assign(world->workers, w, s->spec.replicas, &place->replica,
                            &place->replica_end);
        place->replica_end += place->replica;
        dt__replicas_assign(world->workers, w, s->spec.parts, &place->part, &place->part_end);
        place->part_end += place->part;
        for (int p = place->part; p < place->part_end; p++)
            s->owner[p] = w;
    }
}

/* Returns the worker of a node that acts for a worker of another node; -1: the node has only the
 * bank. */
static int helper_of(const struct dt_split *s, int node, int worker)
{
    return dt__agent_rank(s->x->topo, node, worker) - s->x->world->worker_rank;
}

/* Lists the largest ranges of parts that have one owner: on other nodes a node; on this node a
 * worker or, with `of_node`, the node. */
static void find_sums(const struct dt_split *s, int first, int end, bool of_node, struct sum *sum,
                      int *count)
{
    const int w = s->owner[first], node = s->worker[w].node;
    const bool alone = node == s->x->topo->node && !of_node;
    int p = first;
    while (p < end && s->worker[s->owner[p]].node == node && (!alone || s->owner[p] == w))
        p++;
    if (p == end) {
        sum[(*count)++] = (struct sum){first, end, alone ? w : -1, node, NULL};
        return;
    }
    const int split = dt__tree_split(first, end);
    find_sums(s, first, split, of_node, sum, count);
    find_sums(s, split, end, of_node, sum, count);
}

/* ---- memory --------------------------------------------------------------------------------- */

static size_t widest_sum(const struct dt_split *s)
{
    size_t widest = 0;
    for (int l = 0; l < s->spec.layers; l++)
        if (s->layer[l].inputs && s->layer[l].nin > widest) widest = s->layer[l].nin;
    return widest;
}

/* Returns the offset of a part's columns among the outputs that are sent. */
static size_t part_begin(const struct dt_split *s, int layer, int part)
{
    if (s->layer[layer].softmax) return (size_t)part * SOFTMAX;
    return dt__split_cut(s->layer[layer].nout, (size_t)part, (size_t)s->spec.parts);
}

static void map_memory(struct dt_split *s, struct dt__shm *shm)
{
    const size_t rows = (size_t)s->spec.max_rows;
    s->met = dt__shm_take(shm, 1, sizeof *s->met);
    for (int l = 0; l < s->spec.layers; l++) {
        s->input[l] = dt__shm_take(shm, rows * s->layer[l].nin, sizeof(float));
        s->output[l] = dt__shm_take(shm, rows * part_begin(s, l, s->spec.parts), sizeof(float));
        if (s->layer[l].softmax) s->label = dt__shm_take(shm, rows, sizeof *s->label);
    }
    for (int i = 0; i < s->sums; i++)
        s->sum[i].data = dt__shm_take(shm, rows * widest_sum(s), sizeof(float));
}

static dt_status allocate(struct dt_split *s, const struct dt_split_spec *spec)
{
    const size_t layers = (size_t)spec->layers, parts = (size_t)spec->parts;
    const size_t workers = (size_t)s->x->world->workers;
    s->spec = *spec;
    DT_TRY(DT__ARENA_ALLOC(
        &s->arena, "split layers", DT__TABLE(s->layer, layers), DT__TABLE(s->input, layers),
        DT__TABLE(s->output, layers), DT__TABLE(s->worker, workers), DT__TABLE(s->owner, parts),
        DT__TABLE(s->sum, parts), DT__TABLE(s->give, parts), DT__TABLE(s->sum_at, parts),
        DT__TABLE(s->row, (size_t)spec->replicas + 1)));
    memcpy(s->layer, spec->layer, layers * sizeof *s->layer);
    return DT_OK;
}

dt_status dt__split_create(struct dt_exchange *x, const struct dt_split_spec *spec,
                           struct dt_split **out)
{
    struct dt_split *s = NULL;
    struct dt__shm shm = {0};
    size_t own = 0; /* partial sums of this node */
    dt_status status = dt__alloc(1, sizeof *s, "split layers", &s);
    if (!status) {
        *s = (struct dt_split){.x = x, .self = x->world->worker};
        status = allocate(s, spec);
    }
    DT_GUARD(dt__ranks_agree(&x->all, status));
    list_workers(s);
    find_sums(s, 0, spec->parts, false, s->sum, &s->sums);
    for (int i = 0; i < s->sums; i++)
        s->sum_at[s->sum[i].first] = i;
    find_sums(s, 0, spec->parts, true, s->give, &s->gives);
    map_memory(s, &shm);
    /* if /dev/shm is too small for more than the gradients, the rows are in a file */
    if (!dt__shared_fits(x->node_comm, shm.used, "rows of split layers"))
        shm.dir = dt__temporary_dir();
    DT_GUARD(dt__shared_create(x->node_comm, &shm, "rows of split layers", &x->all, &s->shared));
    shm = (struct dt__shm){.memory = s->shared.memory};
    map_memory(s, &shm);
    for (int g = 0; g < s->gives && x->topo->nodes > 1; g++)
        own += s->give[g].node == x->topo->node;
    status = DT__ARENA_ALLOC(&s->arena, "sums of split layers",
                             DT__TABLE(s->send, own * (size_t)spec->max_rows * widest_sum(s)));
    DT_GUARD(dt__ranks_agree(&x->all, status));
    *out = s;
done:
    if (status) dt__split_destroy(s);
    return status;
}

void dt__split_destroy(struct dt_split *s)
{
    if (!s) return;
    dt__shared_free(&s->shared);
    dt__arena_free(&s->arena);
    dt_free(s);
}

/* ---- places --------------------------------------------------------------------------------- */

int dt__split_owner(const struct dt_split *s, int part)
{
    return s->owner[part];
}

/* Returns this worker's partial sum number `index`; NULL: it has fewer. */
static const struct sum *own_sum(const struct dt_split *s, int index)
{
    for (int i = 0; i < s->sums; i++)
        if (s->sum[i].worker >= 0 && s->sum[i].worker == s->self && index-- == 0) return &s->sum[i];
    return NULL;
}

bool dt__split_partial(const struct dt_split *s, int index, int *first, int *end)
{
    const struct sum *sum = own_sum(s, index);
    if (!sum) return false;
    *first = sum->first;
    *end = sum->end;
    return true;
}

void dt__split_begin(struct dt_split *s, const int *rows)
{
    for (int r = 0; r < s->spec.replicas; r++)
        s->row[r + 1] = s->row[r] + rows[r];
}

int dt__split_rows(const struct dt_split *s)
{
    return s->row[s->spec.replicas];
}

int dt__split_row(const struct dt_split *s, int replica)
{
    return s->row[replica];
}

/* Return the first row of a worker, and its number of rows. */
static int first_row(const struct dt_split *s, int worker)
{
    return s->row[s->worker[worker].replica];
}
static int rows_of(const struct dt_split *s, int worker)
{
    return s->row[s->worker[worker].replica_end] - first_row(s, worker);
}

static size_t block_begin(const struct dt_split *s, int layer, size_t block)
{
    const size_t nin = s->layer[layer].nin;
    return dt__split_cut(nin, block, dt__split_blocks(nin));
}
static size_t block_depth(const struct dt_split *s, int layer, size_t block)
{
    return block_begin(s, layer, block + 1) - block_begin(s, layer, block);
}
/* Returns the offset of a row of a block, in floats. */
static size_t block_at(const struct dt_split *s, int layer, size_t block, int row)
{
    return (size_t)s->spec.max_rows * block_begin(s, layer, block) +
           (size_t)row * block_depth(s, layer, block);
}

float *dt__split_inputs(const struct dt_split *s, int layer, size_t block)
{
    return s->input[layer] + block_at(s, layer, block, 0);
}

float *dt__split_outputs(const struct dt_split *s, int layer, int part)
{
    return s->output[layer] + (size_t)s->spec.max_rows * part_begin(s, layer, part);
}

int32_t *dt__split_labels(const struct dt_split *s)
{
    return s->label;
}

float *dt__split_sum(const struct dt_split *s, int layer, int index, size_t block)
{
    return own_sum(s, index)->data + block_at(s, layer, block, 0);
}

/* ---- messages -------------------------------------------------------------------------------
 *
 * Buffers in a node's memory, the workers that write and read them, and the meeting between the
 * two. R is the worker that has the rows, and O the owner of a part:
 *   buffer   written by   read by                         meeting
 *   input    R            O                               after the messages of give_inputs
 *   output   O            R                               after those of move_outputs, home
 *   (deltas) R            O                               after those of move_outputs
 *   sums     O            the worker that adds them, R    before those of return_sums
 * A buffer is written again only in the next step, after the exchange has ended this one. Sums are
 * an exception: all split layers of a step share them, and the meeting for the deltas of the next
 * layer protects them. */

/* Starts a message of floats, or labels, from one worker to another, if this worker is one of the
 * two. All workers call it in the same order. */
static void post(struct dt_split *s, int from, int to, void *floats, size_t n)
{
    const bool sends = from == s->self;
    const int rank = s->worker[sends ? to : from].rank;
    if (sends || to == s->self)
        dt__message_begin(&s->x->requests, &s->left, floats, n * sizeof(float),
                          (struct dt__envelope){sends, rank, DT__TAG_SPLIT, DT__MPI_CHUNK});
}

/* Waits until all messages are complete. Meanwhile the exchange of other layers' gradients
 * advances. */
static void finish_messages(struct dt_split *s)
{
    dt__exchange_finish(s->x, &s->left, "rows of split layers");
}

/* Waits until this node's workers have all arrived here. */
static void meet(struct dt_split *s)
{
    s->meetings += (uint32_t)s->x->topo->workers;
    dt__event_post(s->met, 1);
    dt__exchange_wait(s->x, s->met, s->meetings, "rows of split layers");
}

void dt__split_give_inputs(struct dt_split *s, int layer)
{
    for (int w = 0; w < s->x->world->workers; w++)
        for (int n = 0; n < s->x->topo->nodes; n++) {
            const int to = helper_of(s, n, w), row = first_row(s, w);
            const size_t rows = (size_t)rows_of(s, w);
            if (n == s->worker[w].node || to < 0) continue;
            for (size_t b = 0; b < dt__split_blocks(s->layer[layer].nin); b++)
                post(s, w, to, s->input[layer] + block_at(s, layer, b, row),
                     rows * block_depth(s, layer, b));
            if (s->layer[layer].softmax) post(s, w, to, s->label + row, rows);
        }
    finish_messages(s);
    meet(s);
}

void dt__split_move_outputs(struct dt_split *s, int layer, bool home)
{
    for (int p = 0; p < s->spec.parts; p++) {
        const size_t columns = part_begin(s, layer, p + 1) - part_begin(s, layer, p);
        for (int w = 0; w < s->x->world->workers; w++) {
            const int owner = s->owner[p], from = home ? owner : w, to = home ? w : owner;
            float *at = dt__split_outputs(s, layer, p) + (size_t)first_row(s, w) * columns;
            if (s->worker[from].node != s->worker[to].node)
                post(s, from, to, at, (size_t)rows_of(s, w) * columns);
        }
    }
    finish_messages(s);
    meet(s);
}

/* Returns n floats, from `at` on, of the sum over parts [first, end): the address of a stored sum
 * if one covers exactly these parts, otherwise out (n). */
static const float *sum_floats(const struct dt_split *s, int first, int end, size_t at, size_t n,
                               float *out, float (*level)[DT_SPLIT_DEPTH])
{
    const struct sum *sum = &s->sum[s->sum_at[first]];
    if (sum->end == end) return sum->data + at;
    const int split = dt__tree_split(first, end);
    const float *left = sum_floats(s, first, split, at, n, out, level);
    const float *right = sum_floats(s, split, end, at, n, *level, level + 1);
    dt__floats_add(n, left, right, out);
    return out;
}

/* Writes rows of a block of the sum over parts [first, end) to out, where rows are `stride` floats
 * apart. */
static void sum_rows(const struct dt_split *s, int layer, size_t block, int first, int end, int row,
                     int rows, float *out, size_t stride)
{
    const size_t depth = block_depth(s, layer, block);
    float level[MOST_DEPTH][DT_SPLIT_DEPTH];
    for (int r = 0; r < rows; r++, out += stride) {
        const float *sum =
            sum_floats(s, first, end, block_at(s, layer, block, row + r), depth, out, level);
        if (sum != out) memcpy(out, sum, depth * sizeof *out);
    }
}

void dt__split_return_sums(struct dt_split *s, int layer)
{
    const size_t blocks = dt__split_blocks(s->layer[layer].nin);
    float *send = s->send;
    meet(s);
    for (int w = 0; w < s->x->world->workers; w++)
        for (int g = 0; g < s->gives; g++) {
            const struct sum *give = &s->give[g];
            const int from = helper_of(s, give->node, w), row = first_row(s, w);
            if (give->node == s->worker[w].node) continue;
            for (size_t b = 0; b < blocks && (from == s->self || w == s->self); b++) {
                const size_t depth = block_depth(s, layer, b), n = (size_t)rows_of(s, w) * depth;
                float *at = send;
                if (w == s->self)
                    at = s->sum[s->sum_at[give->first]].data + block_at(s, layer, b, row);
                else
                    sum_rows(s, layer, b, give->first, give->end, row, rows_of(s, w), at, depth);
                post(s, from, w, at, n);
                send += w == s->self ? 0 : n;
            }
        }
    finish_messages(s);
}

void dt__split_read_sums(const struct dt_split *s, int layer, int row, int rows, float *out)
{
    const size_t nin = s->layer[layer].nin;
    for (size_t b = 0; b < dt__split_blocks(nin); b++)
        sum_rows(s, layer, b, 0, s->spec.parts, row, rows, out + block_begin(s, layer, b), nin);
}

/* ---- what it costs -------------------------------------------------------------------------- */

double dt__split_sent(const struct dt_split_layer *layer, int parts, int rows, int nodes)
{
    const double others = 1 - 1.0 / nodes, nin = (double)layer->nin;
    const double nout = layer->softmax ? parts * SOFTMAX : (double)layer->nout;
    return rows * others * ((layer->inputs ? 2 : 1) * nin + 2 * nout / nodes);
}

double dt__split_sent_whole(const struct dt_split_layer *layer, int nodes)
{
    const double others = 1 - 1.0 / nodes, nin = (double)layer->nin, nout = (double)layer->nout;
    return 2 * others * (nin + 1) * nout;
}
