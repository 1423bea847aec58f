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

static bool shape_sizes(struct dt__slots_shape *shape, size_t params)
{
    size_t weights, slots;
    shape->weights_at = (size_t)dt__slots_words(shape) * DT__WORD_STRIDE;
    return dt_size_mul(params, sizeof(float), &shape->vector) &&
           block_bytes(sizeof(struct dt__weights), shape->vector, 1, &shape->weights_stride) &&
           block_bytes(sizeof(struct dt__slot), shape->vector, shape->keep_seen ? 2 : 1,
                       &shape->slot_stride) &&
           dt_size_mul(shape->weights_stride, (size_t)shape->buffers, &weights) &&
           dt_size_mul(shape->slot_stride, (size_t)shape->workers * DT__SLOTS, &slots) &&
           dt_size_add(shape->weights_at, weights, &shape->slots_at) &&
           dt_size_add(shape->slots_at, slots, &shape->bytes);
}

dt_status dt__slots_shape_init(struct dt__slots_shape *shape, int workers, int slack,
                               const struct dt_async_spec *spec)
{
    if (workers >= MOST_BUFFERS - 2 - slack)
        return dt_fail(DT_EUSAGE, "async: %d workers are too many", workers);
    *shape = (struct dt__slots_shape){.workers = workers,
                                      .buffers = workers + 2 + slack,
                                      .slack = slack,
                                      .staleness = spec->staleness,
                                      .keep_seen = spec->keep_seen};
    if (!shape_sizes(shape, spec->params))
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

size_t dt__slot_at(const struct dt__slots_shape *shape, int worker, uint64_t number)
{
    size_t slot = (size_t)worker * DT__SLOTS + (size_t)(number % DT__SLOTS);
    return shape->slots_at + slot * shape->slot_stride;
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
