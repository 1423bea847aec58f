#include "comm/slots.h"

enum { MOST_BUFFERS = 1 << 16 };

/* A block of a head and `vectors` vectors, rounded up to whole cache lines. */
static bool block_bytes(size_t head, size_t vector, size_t vectors, size_t *out)
{
    size_t bytes;
    if (!dt_size_mul(vector, vectors, &bytes) || !dt_size_add(bytes, head + 63, &bytes))
        return false;
    *out = bytes & ~(size_t)63;
    return true;
}

static size_t whole_lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Words, the bank's state and its journal: of tens of thousands of workers at most. */
static void place_control(struct dt__slots_shape *shape)
{
    size_t peers = (size_t)shape->workers * sizeof(struct dt__slots_peer);
    size_t journal = (size_t)shape->way.journal * sizeof(struct dt_applied);
    shape->bank_at = (size_t)dt__slots_words(shape) * DT__WORD_STRIDE;
    shape->journal_at = shape->bank_at + whole_lines(sizeof(struct dt__slots_state) + peers);
    shape->states_at = shape->journal_at + whole_lines(journal);
}

static bool shape_sizes(struct dt__slots_shape *shape, const struct dt_async_spec *spec)
{
    size_t states, weights, slots;
    place_control(shape);
    return dt_size_mul(spec->params, sizeof(float), &shape->vector) &&
           block_bytes(0, shape->vector, 1, &shape->states_stride) &&
           dt_size_mul(shape->states_stride, (size_t)spec->states, &states) &&
           dt_size_add(shape->states_at, states, &shape->weights_at) &&
           block_bytes(sizeof(struct dt__weights), shape->vector, 1, &shape->weights_stride) &&
           block_bytes(sizeof(struct dt__slot), shape->vector, shape->keep_seen ? 2 : 1,
                       &shape->slot_stride) &&
           dt_size_mul(shape->weights_stride, (size_t)shape->buffers, &weights) &&
           dt_size_mul(shape->slot_stride, (size_t)shape->workers * DT__SLOTS, &slots) &&
           dt_size_add(shape->weights_at, weights, &shape->slots_at) &&
           dt_size_add(shape->slots_at, slots, &shape->bytes);
}

dt_status dt__slots_shape_init(struct dt__slots_shape *shape, int workers, struct dt__slots_way way,
                               const struct dt_async_spec *spec)
{
    if (workers >= MOST_BUFFERS - 2 - way.slack)
        return dt_fail(DT_EUSAGE, "async: %d workers are too many", workers);
    *shape = (struct dt__slots_shape){.way = way,
                                      .workers = workers,
                                      .buffers = workers + (way.shared ? 1 : 2) + way.slack,
                                      .staleness = spec->staleness,
                                      .keep_seen = spec->keep_seen};
    if (!shape_sizes(shape, spec))
        return dt_fail(DT_EMEMORY, "async: %d workers with %zu parameters are beyond memory",
                       workers, spec->params);
    return DT_OK;
}

int dt__slots_words(const struct dt__slots_shape *shape)
{
    return WORD_WORKERS + shape->workers * WORDS_A_WORKER;
}

int dt__slots_word(int word, int worker)
{
    return WORD_WORKERS + worker * WORDS_A_WORKER + word;
}

size_t dt__weights_at(const struct dt__slots_shape *shape, int buffer)
{
    return shape->weights_at + (size_t)buffer * shape->weights_stride;
}

size_t dt__slot_at(const struct dt__slots_shape *shape, int worker, int slot)
{
    return shape->slots_at + (size_t)(worker * DT__SLOTS + slot) * shape->slot_stride;
}

uint64_t dt__bell_pack(struct dt__bell bell)
{
    return bell.count * DT__SLOTS + (uint64_t)bell.slot;
}

struct dt__bell dt__bell_unpack(uint64_t word)
{
    return (struct dt__bell){.count = word / DT__SLOTS, .slot = (int)(word % DT__SLOTS)};
}

uint64_t dt__published_pack(struct dt__published published)
{
    return published.number * MOST_BUFFERS + (uint64_t)published.buffer;
}

struct dt__published dt__published_unpack(uint64_t word)
{
    return (struct dt__published){.number = word / MOST_BUFFERS,
                                  .buffer = (int)(word % MOST_BUFFERS)};
}
