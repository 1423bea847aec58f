/* A shuffle of more rows than memory holds. */
#include "data/scatter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/fd.h"

/* Half of the memory holds a bucket that is taken out, or the buckets' buffers while rows come
 * in. */
enum { LARGEST_BUFFER = 1 << 18 };

struct bucket {
    uint64_t begin, rows; /* place in the file, in rows */
    uint64_t written;     /* rows in the file */
    size_t waiting;       /* rows in its buffer */
};

struct dt__scatter {
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

static uint64_t bucket_begin(const struct dt__scatter *scatter, size_t bucket)
{
    return (uint64_t)((unsigned __int128)scatter->rows * bucket / scatter->nbuckets);
}

static dt_status make_buckets(struct dt__scatter *scatter, uint64_t memory)
{
    uint64_t row = scatter->row_bytes, fit = memory / 2 / row ? memory / 2 / row : 1;
    scatter->nbuckets = (size_t)((scatter->rows - 1) / fit + 1);
    uint64_t buffer = memory / 2 / scatter->nbuckets;
    scatter->buffer_rows = (size_t)((buffer < LARGEST_BUFFER ? buffer : LARGEST_BUFFER) / row);
    if (!scatter->buffer_rows) scatter->buffer_rows = 1;
    DT_TRY(dt_alloc(scatter->nbuckets, sizeof *scatter->buckets, "buckets", &scatter->buckets));
    for (size_t b = 0; b < scatter->nbuckets; b++) {
        scatter->buckets[b].begin = bucket_begin(scatter, b);
        scatter->buckets[b].rows = bucket_begin(scatter, b + 1) - bucket_begin(scatter, b);
    }
    return dt_alloc(scatter->nbuckets * scatter->buffer_rows, scatter->row_bytes, "buckets",
                    &scatter->buffers);
}

static dt_status make(struct dt__scatter *scatter, const char *dir, uint64_t memory)
{
    DT_TRY(dt__fd_temporary(dir, &scatter->fd));
    DT_TRY(make_buckets(scatter, memory));
    dt_perm_init(&scatter->spread, scatter->rows,
                 dt_rng_make(scatter->seed, DT_STREAM_SHARD, 0, 0));
    return DT_OK;
}

dt_status dt__scatter_create(const char *dir, uint64_t seed, uint64_t rows, size_t row_bytes,
                             uint64_t memory, struct dt__scatter **out)
{
    struct dt__scatter *scatter;
    DT_TRY(dt_alloc(1, sizeof *scatter, "shuffle", &scatter));
    *scatter = (struct dt__scatter){.fd = -1, .seed = seed, .rows = rows, .row_bytes = row_bytes};
    dt_status status = make(scatter, dir, memory);
    if (status)
        dt__scatter_destroy(scatter);
    else
        *out = scatter;
    return status;
}

void dt__scatter_destroy(struct dt__scatter *scatter)
{
    if (!scatter) return;
    if (scatter->fd >= 0) close(scatter->fd);
    dt_free(scatter->buckets);
    dt_free(scatter->buffers);
    dt_free(scatter->memory);
    dt_free(scatter);
}

/* ---- in ------------------------------------------------------------------------------------- */

static size_t find_bucket(const struct dt__scatter *scatter, uint64_t position)
{
    size_t b = (size_t)((unsigned __int128)position * scatter->nbuckets / scatter->rows);
    while (position < scatter->buckets[b].begin)
        b--;
    while (position >= scatter->buckets[b].begin + scatter->buckets[b].rows)
        b++;
    return b;
}

static dt_status flush(struct dt__scatter *scatter, size_t b)
{
    struct bucket *bucket = &scatter->buckets[b];
    size_t bytes = bucket->waiting * scatter->row_bytes;
    const unsigned char *from = scatter->buffers + b * scatter->buffer_rows * scatter->row_bytes;
    uint64_t offset = (bucket->begin + bucket->written) * scatter->row_bytes;
    DT_TRY(dt__fd_write(scatter->fd, "the temporary file of the shuffle", from, bytes, offset));
    bucket->written += bucket->waiting;
    bucket->waiting = 0;
    return DT_OK;
}

dt_status dt__scatter_put(struct dt__scatter *scatter, const void *row)
{
    size_t b = find_bucket(scatter, dt_perm_at(&scatter->spread, scatter->put++));
    struct bucket *bucket = &scatter->buckets[b];
    size_t slot = b * scatter->buffer_rows + bucket->waiting++;
    memcpy(scatter->buffers + slot * scatter->row_bytes, row, scatter->row_bytes);
    return bucket->waiting == scatter->buffer_rows ? flush(scatter, b) : DT_OK;
}

/* ---- out ------------------------------------------------------------------------------------ */

/* All rows are in: the buffers make room for the largest bucket. */
static dt_status turn(struct dt__scatter *scatter)
{
    for (size_t b = 0; b < scatter->nbuckets; b++)
        DT_TRY(flush(scatter, b));
    dt_free(scatter->buffers);
    scatter->buffers = NULL;
    return dt_alloc((size_t)(scatter->rows / scatter->nbuckets + 1), scatter->row_bytes, "a bucket",
                    &scatter->memory);
}

static dt_status load(struct dt__scatter *scatter, size_t b)
{
    const struct bucket *bucket = &scatter->buckets[b];
    DT_TRY(dt__fd_read(scatter->fd, "the temporary file of the shuffle", scatter->memory,
                       (size_t)bucket->rows * scatter->row_bytes,
                       bucket->begin * scatter->row_bytes));
    dt_perm_init(&scatter->within, bucket->rows, dt_rng_make(scatter->seed, DT_STREAM_SHARD, 1, b));
    scatter->current = b + 1;
    return DT_OK;
}

dt_status dt__scatter_take(struct dt__scatter *scatter, const unsigned char **out_row)
{
    if (!scatter->memory) DT_TRY(turn(scatter));
    size_t b = find_bucket(scatter, scatter->taken);
    if (b + 1 != scatter->current) DT_TRY(load(scatter, b));
    uint64_t inside = scatter->taken++ - scatter->buckets[b].begin;
    *out_row = scatter->memory + dt_perm_at(&scatter->within, inside) * scatter->row_bytes;
    return DT_OK;
}
