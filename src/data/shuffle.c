/* A shuffle of more rows than memory holds. */
#include "data/shuffle.h"

#include <string.h>
#include <unistd.h>

#include "base/limits.h"

/* Half of the memory holds a bucket that is taken out, or the buckets' buffers while rows come
 * in. */

struct bucket {
    uint64_t written; /* rows in the file */
    size_t waiting;   /* rows in its buffer */
};

struct dt__shuffle {
    int fd;
    uint64_t seed, rows, put, taken;
    size_t row_bytes;
    struct dt_perm spread; /* of all rows: which bucket */
    struct dt_perm within; /* of the rows of the bucket that is in memory */
    struct bucket *buckets;
    size_t nbuckets, buffer_rows, current; /* current: bucket in memory, + 1; 0: none */
    unsigned char *buffers, *memory;
};

/* ---- making --------------------------------------------------------------------------------- */

/* Its place in the file, in rows. */
static uint64_t bucket_begin(const struct dt__shuffle *shuffle, size_t bucket)
{
    return (uint64_t)((unsigned __int128)shuffle->rows * bucket / shuffle->nbuckets);
}

dt_status dt__shuffle_create(const char *dir, uint64_t seed, uint64_t rows, size_t row_bytes,
                             uint64_t memory, struct dt__shuffle **out)
{
    struct dt__shuffle *shuffle;
    const uint64_t fit = memory / 2 / row_bytes ? memory / 2 / row_bytes : 1;
    dt_status status;
    DT_TRY(dt_alloc(1, sizeof *shuffle, "shuffle", &shuffle));
    *shuffle = (struct dt__shuffle){.fd = -1, .seed = seed, .rows = rows, .row_bytes = row_bytes};
    dt_perm_init(&shuffle->spread, rows, dt_rng_make(seed, DT_STREAM_SHARD, 0, 0));
    DT_GUARD(dt_fd_temporary(dir, &shuffle->fd));
    const size_t buckets = shuffle->nbuckets = (size_t)((rows - 1) / fit + 1);
    const uint64_t buffer = memory / 2 / buckets;
    shuffle->buffer_rows =
        (size_t)((buffer < DT__SHUFFLE_BYTES ? buffer : DT__SHUFFLE_BYTES) / row_bytes);
    if (!shuffle->buffer_rows) shuffle->buffer_rows = 1;
    DT_GUARD(dt_alloc(buckets, sizeof *shuffle->buckets, "buckets", &shuffle->buckets));
    DT_GUARD(dt_alloc(buckets * shuffle->buffer_rows, row_bytes, "buckets", &shuffle->buffers));
    *out = shuffle;
    return DT_OK;
done:
    dt__shuffle_destroy(shuffle);
    return status;
}

void dt__shuffle_destroy(struct dt__shuffle *shuffle)
{
    if (!shuffle) return;
    if (shuffle->fd >= 0) close(shuffle->fd);
    dt_free(shuffle->buckets);
    dt_free(shuffle->buffers);
    dt_free(shuffle->memory);
    dt_free(shuffle);
}

/* ---- in ------------------------------------------------------------------------------------- */

static size_t bucket_find(const struct dt__shuffle *shuffle, uint64_t position)
{
    size_t b = (size_t)((unsigned __int128)position * shuffle->nbuckets / shuffle->rows);
    while (position < bucket_begin(shuffle, b))
        b--;
    while (position >= bucket_begin(shuffle, b + 1))
        b++;
    return b;
}

static dt_status bucket_flush(struct dt__shuffle *shuffle, size_t b)
{
    struct bucket *bucket = &shuffle->buckets[b];
    size_t bytes = bucket->waiting * shuffle->row_bytes;
    const unsigned char *from = shuffle->buffers + b * shuffle->buffer_rows * shuffle->row_bytes;
    uint64_t offset = (bucket_begin(shuffle, b) + bucket->written) * shuffle->row_bytes;
    DT_TRY(dt_fd_write_at(shuffle->fd, "the temporary file of the shuffle", from, bytes, offset));
    bucket->written += bucket->waiting;
    bucket->waiting = 0;
    return DT_OK;
}

dt_status dt__shuffle_put(struct dt__shuffle *shuffle, const void *row)
{
    size_t b = bucket_find(shuffle, dt_perm_at(&shuffle->spread, shuffle->put++));
    struct bucket *bucket = &shuffle->buckets[b];
    size_t slot = b * shuffle->buffer_rows + bucket->waiting++;
    memcpy(shuffle->buffers + slot * shuffle->row_bytes, row, shuffle->row_bytes);
    return bucket->waiting == shuffle->buffer_rows ? bucket_flush(shuffle, b) : DT_OK;
}

/* ---- out ------------------------------------------------------------------------------------ */

dt_status dt__shuffle_take(struct dt__shuffle *shuffle, const unsigned char **out_row)
{
    if (!shuffle->memory) { /* all rows are in: the buffers make room for the largest bucket */
        for (size_t i = 0; i < shuffle->nbuckets; i++)
            DT_TRY(bucket_flush(shuffle, i));
        dt_free(shuffle->buffers);
        shuffle->buffers = NULL;
        DT_TRY(dt_alloc((size_t)(shuffle->rows / shuffle->nbuckets + 1), shuffle->row_bytes,
                        "a bucket", &shuffle->memory));
    }
    size_t b = bucket_find(shuffle, shuffle->taken);
    if (b + 1 != shuffle->current) {
        const uint64_t begin = bucket_begin(shuffle, b),
                       rows = bucket_begin(shuffle, b + 1) - begin;
        DT_TRY(dt_fd_read(shuffle->fd, "the temporary file of the shuffle", shuffle->memory,
                          (size_t)rows * shuffle->row_bytes, begin * shuffle->row_bytes));
        dt_perm_init(&shuffle->within, rows, dt_rng_make(shuffle->seed, DT_STREAM_SHARD, 1, b));
        shuffle->current = b + 1;
    }
    uint64_t inside = shuffle->taken++ - bucket_begin(shuffle, b);
    *out_row = shuffle->memory + dt_perm_at(&shuffle->within, inside) * shuffle->row_bytes;
    return DT_OK;
}
