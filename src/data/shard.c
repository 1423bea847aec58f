/* Shuffles the training data into shards, which are HDF5 files.
 *
 *     rows of the source --> buckets of a temporary file --> rows of shard after shard
 *
 * The rows may exceed the memory. So each row goes to a bucket, and each bucket, which fits in
 * memory, is shuffled when it is read back. A keyed permutation of all rows decides the bucket of a
 * row. This way the size of each bucket is known beforehand, and all buckets lie side by side in
 * one file. Every row is written and read once, in blocks; writing each row straight to its final
 * place would cost one disk access per row.
 *
 * The HDF5 writer lays out a shard, with space for /x and /y. Plain writes then put the rows into
 * that space, so disk errors are reported here and no byte is copied twice. Rows of a table with
 * texts, dates or gaps are written as words (DT__SHARD_ROWS), sparse rows of LIBSVM in full. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/limits.h"
#include "data/cursor.h"
#include "data/formats.h"
#include "data/shard_set.h"
#include "hdf5/write.h"
#include "table/columns_file.h"

/* ---- the shuffle ---------------------------------------------------------------------------- */

struct bucket {
    uint64_t written; /* rows of the bucket that are in the file */
    size_t waiting;   /* rows of the bucket that are in its buffer */
};

/* A shuffle of rows. Uses half of data.memory_mb: while rows are added, for the buffers of all
 * buckets; later, for the bucket that has been read back. */
struct shuffle {
    int fd; /* the temporary file, which is unnamed */
    uint64_t seed, rows, put, taken;
    size_t row_bytes;                /* x, y and, if rows have them, weight, group and time */
    const struct dt__row_keys *keys; /* groups and times of all rows */
    struct dt_perm spread;           /* permutation of all rows: assigns them to buckets */
    struct dt_perm within;           /* permutation of the rows of the bucket in memory */
    struct bucket *buckets;
    size_t nbuckets, buffer_rows, current; /* current: 1 + the bucket in memory; 0: none */
    unsigned char *buffers, *memory;
};

static const char TEMPORARY[] = "the temporary file of the shuffle"; /* in messages */

static dt_status shuffle_init(struct shuffle *shuffle, const char *dir, uint64_t memory)
{
    const size_t row_bytes = shuffle->row_bytes;
    const uint64_t fit = memory / 2 / row_bytes ? memory / 2 / row_bytes : 1;
    const size_t buckets = shuffle->nbuckets = (size_t)((shuffle->rows - 1) / fit + 1);
    const uint64_t capacity = memory / 2 / buckets;
    shuffle->buffer_rows =
        (size_t)((capacity < DT__SHUFFLE_BYTES ? capacity : DT__SHUFFLE_BYTES) / row_bytes);
    if (!shuffle->buffer_rows) shuffle->buffer_rows = 1;
    dt__perm_init(&shuffle->spread, shuffle->rows,
                  dt__rng_make(shuffle->seed, DT_STREAM_SHARD, 0, 0));
    DT_TRY(dt__fd_temporary(dir, &shuffle->fd));
    DT_TRY(dt__alloc(buckets, sizeof *shuffle->buckets, "buckets", &shuffle->buckets));
    return dt__alloc(buckets * shuffle->buffer_rows, row_bytes, "buckets", &shuffle->buffers);
}

static void shuffle_free(struct shuffle *shuffle)
{
    if (shuffle->fd >= 0) close(shuffle->fd);
    dt_free(shuffle->buckets);
    dt_free(shuffle->buffers);
    dt_free(shuffle->memory);
}

/* Returns the number of rows in the buckets before this one. */
static uint64_t bucket_begin(const struct shuffle *shuffle, size_t bucket)
{
    return (uint64_t)((unsigned __int128)shuffle->rows * bucket / shuffle->nbuckets);
}

/* Returns the bucket of a position in the permuted order. */
static size_t bucket_find(const struct shuffle *shuffle, uint64_t position)
{
    size_t b = (size_t)((unsigned __int128)position * shuffle->nbuckets / shuffle->rows);
    while (position < bucket_begin(shuffle, b))
        b--;
    while (position >= bucket_begin(shuffle, b + 1))
        b++;
    return b;
}

static dt_status bucket_flush(struct shuffle *shuffle, size_t b)
{
    struct bucket *bucket = &shuffle->buckets[b];
    const size_t bytes = bucket->waiting * shuffle->row_bytes;
    const unsigned char *from = shuffle->buffers + b * shuffle->buffer_rows * shuffle->row_bytes;
    const uint64_t offset = (bucket_begin(shuffle, b) + bucket->written) * shuffle->row_bytes;
    bucket->written += bucket->waiting;
    bucket->waiting = 0;
    return dt__fd_write_at(shuffle->fd, TEMPORARY, from, bytes, offset);
}

static size_t group_bytes(const struct dt__row_keys *keys)
{
    return keys->grouped ? sizeof *keys->group : 0;
}

static size_t time_bytes(const struct dt__row_keys *keys)
{
    return keys->timed ? sizeof *keys->time : 0;
}

/* Adds a row of a block. All rows must be added before the first shuffle_take. */
static dt_status shuffle_put(struct shuffle *shuffle, const struct dt__row_layout *layout,
                             const struct dt__block *block, size_t row)
{
    const struct dt__row_keys *keys = shuffle->keys;
    const uint64_t raw = shuffle->put++;
    const size_t b = bucket_find(shuffle, dt__perm_at(&shuffle->spread, raw));
    struct bucket *bucket = &shuffle->buckets[b];
    const size_t slot = b * shuffle->buffer_rows + bucket->waiting++;
    unsigned char *to = shuffle->buffers + slot * shuffle->row_bytes;
    memcpy(to, dt__block_x(layout, block, row), dt__row_layout_x(layout));
    to += dt__row_layout_x(layout);
    memcpy(to, dt__block_y(layout, block, row), dt__row_layout_y(layout));
    to += dt__row_layout_y(layout);
    if (layout->weights) memcpy(to, &block->weight[row], sizeof(float));
    to += layout->weights ? sizeof(float) : 0;
    if (keys->grouped) memcpy(to, &keys->group[raw], sizeof *keys->group);
    if (keys->timed) memcpy(to + group_bytes(keys), &keys->time[raw], sizeof *keys->time);
    return bucket->waiting == shuffle->buffer_rows ? bucket_flush(shuffle, b) : DT_OK;
}

/* Sets *out_row to the next row in shuffled order. It is valid until the next call. */
static dt_status shuffle_take(struct shuffle *shuffle, const unsigned char **out_row)
{
    if (!shuffle->memory) { /* the first call: replace the buffers by memory for the largest
                             * bucket */
        for (size_t i = 0; i < shuffle->nbuckets; i++)
            DT_TRY(bucket_flush(shuffle, i));
        dt_free(shuffle->buffers);
        shuffle->buffers = NULL;
        DT_TRY(dt__alloc((size_t)(shuffle->rows / shuffle->nbuckets + 1), shuffle->row_bytes,
                         "a bucket", &shuffle->memory));
    }
    const size_t b = bucket_find(shuffle, shuffle->taken);
    const uint64_t begin = bucket_begin(shuffle, b);
    if (b + 1 != shuffle->current) {
        const uint64_t rows = bucket_begin(shuffle, b + 1) - begin;
        DT_TRY(dt__fd_read(shuffle->fd, TEMPORARY, shuffle->memory,
                           (size_t)rows * shuffle->row_bytes, begin * shuffle->row_bytes));
        dt__perm_init(&shuffle->within, rows, dt__rng_make(shuffle->seed, DT_STREAM_SHARD, 1, b));
        shuffle->current = b + 1;
    }
    const uint64_t inside = dt__perm_at(&shuffle->within, shuffle->taken++ - begin);
    *out_row = shuffle->memory + inside * shuffle->row_bytes;
    return DT_OK;
}

/* ---- shards --------------------------------------------------------------------------------- */

struct job {
    const struct dt_source *source;
    struct dt__columns columns; /* a table: its rows are words; items NULL: rows are numbers */
    int32_t bytes;              /* a table: 1 if all its numbers are integers in 0..255 */
    struct shuffle shuffle;
    struct dt__block pending; /* rows not yet written to the shard */

    /* The shard that is being written, and its rows. */
    uint64_t rows;
    int fd;
    const char *path;
    uint64_t laid_out;              /* bytes laid out so far */
    uint32_t *group;                /* (pending rows) */
    double *time;                   /* (pending rows) */
    uint64_t x_at, y_at, weight_at; /* offsets at which the next rows are written */
    uint64_t group_at, time_at;     /* offsets at which the next rows are written */
};

/* Writes the next bytes of a shard's layout, or skips them if `bytes` is NULL. */
static dt_status shard_write_part(void *arg, const void *bytes, size_t length)
{
    struct job *job = arg;
    const uint64_t at = job->laid_out;
    job->laid_out += length;
    return bytes ? dt__fd_write_at(job->fd, job->path, bytes, length, at) : DT_OK;
}

/* Lays out a shard: reserves space for the rows, and writes everything else. */
static dt_status shard_lay_out(struct job *job)
{
    const struct dt_schema *schema = &job->source->schema;
    const struct dt__row_layout *layout = &job->source->layout;
    const int features = layout->features, *shape = schema->shape;
    const bool words = job->columns.items, pictures = shape[0] > 0 && features == schema->features;
    const struct dt__h5_item x = {.path = words ? DT__SHARD_ROWS : "/x",
                                  .type = words           ? DT__H5_U32
                                          : layout->bytes ? DT__H5_U8
                                                          : DT__H5_F32,
                                  .rank = pictures ? 4 : 2,
                                  .dims = {job->rows, (uint64_t)(pictures ? shape[0] : features),
                                           (uint64_t)shape[1], (uint64_t)shape[2]}};
    const struct dt__h5_item y = {.path = "/y",
                                  .type = layout->targets ? DT__H5_F32 : DT__H5_I32,
                                  .rank = layout->targets > 1 ? 2 : 1,
                                  .dims = {job->rows, (uint64_t)layout->targets}};
    const struct dt__h5_item weight = {
        .path = DT__SHARD_WEIGHT, .type = DT__H5_F32, .rank = 1, .dims = {job->rows}};
    const struct dt__h5_item group = {
        .path = DT__SHARD_GROUPS, .type = DT__H5_U32, .rank = 1, .dims = {job->rows}};
    const struct dt__h5_item time = {
        .path = DT__SHARD_TIMES, .type = DT__H5_F64, .rank = 1, .dims = {job->rows}};
    const struct dt__h5_item bytes = {
        .path = DT__SHARD_SMALL, .type = DT__H5_I32, .data = &job->bytes};
    struct dt__h5_layout *file;
    DT_TRY(dt__h5_layout_create(job->path, 0, &file));
    dt__h5_put(file, &x, &job->x_at);
    dt__h5_put(file, &y, &job->y_at);
    if (layout->weights) dt__h5_put(file, &weight, &job->weight_at);
    if (job->group) dt__h5_put(file, &group, &job->group_at);
    if (job->time) dt__h5_put(file, &time, &job->time_at);
    if (words) dt__h5_put(file, &bytes, NULL);
    if (schema->feature_names && !words) /* in a table the columns have the names */
        dt__h5_put_names(file, "/feature_names", schema->feature_names, (size_t)schema->features);
    if (schema->label_names)
        dt__h5_put_names(file, "/label_names", schema->label_names, (size_t)schema->classes);
    if (schema->label_numbers)
        dt__h5_put(file,
                   &(struct dt__h5_item){.path = DT__SHARD_GROUP "/label_numbers",
                                         .type = DT__H5_I64,
                                         .rank = 1,
                                         .dims = {(uint64_t)schema->classes},
                                         .data = schema->label_numbers},
                   NULL);
    if (schema->label_column)
        dt__h5_put_names(file, DT__SHARD_GROUP "/label", &job->source->schema.label_column, 1);
    if (schema->columns) dt__h5_layout_fail(file, dt__columns_put(file, DT__SHARD_GROUP, schema));
    job->laid_out = 0;
    dt_status status = dt__h5_stream(file, shard_write_part, job);
    dt__h5_layout_free(file);
    if (!status && ftruncate(job->fd, (off_t)job->laid_out))
        status = dt_fail(DT_EIO, "%s: %s", job->path, strerror(errno));
    return status;
}

static dt_status shard_flush(struct job *job)
{
    const struct dt__row_layout *layout = &job->source->layout;
    const size_t x = job->pending.rows * dt__row_layout_x(layout);
    const size_t y = job->pending.rows * dt__row_layout_y(layout);
    const size_t weight = layout->weights ? job->pending.rows * sizeof(float) : 0;
    DT_TRY(dt__fd_write_at(job->fd, job->path, job->pending.x, x, job->x_at));
    DT_TRY(dt__fd_write_at(job->fd, job->path, job->pending.y, y, job->y_at));
    if (weight)
        DT_TRY(dt__fd_write_at(job->fd, job->path, job->pending.weight, weight, job->weight_at));
    const size_t group = job->pending.rows * group_bytes(job->shuffle.keys);
    const size_t time = job->pending.rows * time_bytes(job->shuffle.keys);
    if (group) DT_TRY(dt__fd_write_at(job->fd, job->path, job->group, group, job->group_at));
    if (time) DT_TRY(dt__fd_write_at(job->fd, job->path, job->time, time, job->time_at));
    job->group_at += group;
    job->time_at += time;
    job->x_at += x;
    job->y_at += y;
    job->weight_at += weight;
    job->pending.rows = 0;
    return DT_OK;
}

/* Writes a shard: the next job->rows rows of the shuffle. */
static dt_status shard_fill(int fd, const char *path, void *arg)
{
    struct job *job = arg;
    const struct dt__row_layout *layout = &job->source->layout;
    struct dt__block *pending = &job->pending;
    const unsigned char *row;
    job->fd = fd;
    job->path = path;
    DT_TRY(shard_lay_out(job));
    for (uint64_t i = 0; i < job->rows; i++) {
        DT_TRY(shuffle_take(&job->shuffle, &row));
        unsigned char *const x = dt__block_x(layout, pending, pending->rows);
        memcpy(x, row, dt__row_layout_x(layout));
        if (job->columns.items) dt__columns_encode(&job->columns, (uint32_t *)(void *)x);
        row += dt__row_layout_x(layout);
        memcpy(dt__block_y(layout, pending, pending->rows), row, dt__row_layout_y(layout));
        row += dt__row_layout_y(layout);
        if (layout->weights) memcpy(&pending->weight[pending->rows], row, sizeof(float));
        row += layout->weights ? sizeof(float) : 0;
        if (job->group) memcpy(&job->group[pending->rows], row, sizeof *job->group);
        row += group_bytes(job->shuffle.keys);
        if (job->time) memcpy(&job->time[pending->rows], row, sizeof *job->time);
        pending->rows++;
        if (pending->rows == pending->capacity) DT_TRY(shard_flush(job));
    }
    return shard_flush(job);
}

static dt_status job_shuffle_block(void *arg, const struct dt__block *block)
{
    struct job *job = arg;
    for (size_t i = 0; i < block->rows; i++)
        DT_TRY(shuffle_put(&job->shuffle, &job->source->layout, block, i));
    return DT_OK;
}

/* Makes the source return rows in the form that shards store: as words if all files are tables,
 * else as numbers. To get words unchanged, this function takes the columns away from the source,
 * which then treats words as numbers. */
static void job_layout(struct job *job, struct dt_source *source)
{
    struct dt__row_layout *layout = &source->layout;
    bool table = source->schema.columns;
    for (size_t i = 0; i < source->nfiles; i++)
        table &= dt__formats[source->files[i].format]->sparsity == DT__CATEGORIES;
    layout->dense = layout->features;
    job->source = source;
    if (!table) return;
    job->columns = source->columns;
    job->bytes = layout->bytes;
    source->columns = (struct dt__columns){.count = job->columns.count};
    source->gaps = true; /* words need not be finite numbers */
    layout->features = layout->dense = (int)job->columns.count;
    layout->bytes = false;
}

/* ---- the directory -------------------------------------------------------------------------- */

/* Removes the partial shards that a failed or killed run has left. */
static void parts_remove(const char *dir)
{
    DIR *names = opendir(dir);
    for (const struct dirent *entry; names && (entry = readdir(names));)
        if (!fnmatch("shard-*.h5" DT__SHARD_PART "*", entry->d_name, 0))
            unlinkat(dirfd(names), entry->d_name, 0);
    if (names) closedir(names);
}

/* Checks that a directory has no shards, and that its disk has space for `bytes` of shards and for
 * a temporary file of the same size. */
static dt_status dir_check(const char *dir, uint64_t bytes)
{
    struct statvfs disk;
    DIR *names = opendir(dir);
    bool has_shards = false, has_parts = false;
    if (!names) return dt_fail(DT_EIO, "%s: %s", dir, strerror(errno));
    for (const struct dirent *entry; (entry = readdir(names));) {
        has_shards |= !fnmatch("shard-*.h5", entry->d_name, 0);
        has_parts |= !fnmatch("shard-*.h5" DT__SHARD_PART, entry->d_name, 0);
    }
    closedir(names);
    if (has_shards)
        return dt_fail(DT_EIO, "%s: the directory already has shards%s", dir,
                       has_parts ? " of an incomplete set: dtrain shard was killed" : "");
    if (statvfs(dir, &disk)) return dt_fail(DT_EIO, "%s: %s", dir, strerror(errno));
    const unsigned long long left = (unsigned long long)disk.f_bavail * disk.f_frsize;
    if (left / 2 < bytes)
        return dt_fail(DT_EIO, "%s: the disk has %llu MiB left; shuffling takes %llu MiB", dir,
                       left >> 20, (unsigned long long)(bytes >> 19) + 1);
    return DT_OK;
}

/* Renames the first `shards` of `all` shards: with `complete`, removes DT__SHARD_PART from their
 * names; otherwise appends it. */
static dt_status shards_name(const char *out_dir, int shards, int all, bool complete)
{
    dt_status status = DT_OK;
    for (int s = 0; s < shards && !status; s++) {
        char *path, *part = NULL;
        DT_TRY(dt__format(&path, "%s/shard-%05d-of-%05d.h5", out_dir, s, all));
        status = dt__format(&part, "%s" DT__SHARD_PART, path);
        if (!status && rename(complete ? part : path, complete ? path : part)) {
            status = dt_fail(DT_EIO, "%s: %s", path, strerror(errno));
            if (complete) (void)shards_name(out_dir, s, all, false);
        }
        dt_free(part);
        dt_free(path);
    }
    return status || !complete ? status : dt__path_sync(out_dir);
}

/* Locks a directory, so that only one job writes to it, until *out_fd is closed. */
static dt_status dir_hold(const char *dir, int *out_fd)
{
    *out_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*out_fd < 0) return dt_fail(DT_EIO, "%s: %s", dir, strerror(errno));
    /* also accepts a file system without locks */
    if (!flock(*out_fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK) return DT_OK;
    close(*out_fd);
    return dt_fail(DT_EIO, "%s: another dtrain shard is writing to it", dir);
}

dt_status dt__shard_write(const struct dt_config *config, const char *out_dir, int shards)
{
    struct dt_config plain = *config; /* shares the texts of `config` */
    struct job job = {0};
    struct dt_source *source;
    char *path;
    int held;
    plain.data.normalize = DT_NORMALIZE_NONE;
    plain.data.normalize_target = DT_NORMALIZE_TARGET_NO;
    plain.data.clamp_target = false;
    DT_TRY(dt__dir_make(out_dir));
    DT_TRY(dir_hold(out_dir, &held));
    dt_status status = dir_check(out_dir, 0); /* first, because the survey may take long */
    if (!status) parts_remove(out_dir);
    if (!status) status = dt__source_survey(&plain, DT_PART_SHARDS, NULL, &source);
    if (status) close(held);
    DT_TRY(status);
    job_layout(&job, source);
    const struct dt__row_keys *keys = &source->keys;
    const size_t width = dt__row_layout_row(&source->layout) + group_bytes(keys) + time_bytes(keys);
    const size_t step = DT__SHARD_BYTES / width + 1;
    const uint64_t rows = source->rows;
    job.shuffle = (struct shuffle){.fd = -1,
                                   .seed = (uint64_t)config->run.seed,
                                   .rows = rows,
                                   .row_bytes = width,
                                   .keys = keys};
    if (shards < 1 || (uint64_t)shards > rows)
        DT_GUARD(dt_fail(DT_EUSAGE, "%d shards of %llu rows; expected 1 to %llu shards", shards,
                         (unsigned long long)rows, (unsigned long long)rows));
    DT_GUARD(dir_check(out_dir, rows * width));
    DT_GUARD(shuffle_init(&job.shuffle, out_dir, (uint64_t)config->data.memory_mb << 20));
    DT_GUARD(dt__source_walk(source, step, step, job_shuffle_block, &job));
    DT_GUARD(dt__block_alloc(&source->layout, step, 0, &job.pending));
    if (keys->grouped) DT_GUARD(dt__alloc(step, sizeof *job.group, "groups", &job.group));
    if (keys->timed) DT_GUARD(dt__alloc(step, sizeof *job.time, "times", &job.time));
    for (uint64_t s = 0, end; s < (uint64_t)shards && !status; s++) {
        end = (uint64_t)((unsigned __int128)rows * (s + 1) / (unsigned)shards);
        job.rows = end - job.shuffle.taken;
        DT_GUARD(
            dt__format(&path, "%s/shard-%05d-of-%05d.h5" DT__SHARD_PART, out_dir, (int)s, shards));
        status = dt__file_write_by(path, shard_fill, &job, NULL, NULL); /* synced to disk */
        dt_free(path);
    }
    if (!status) status = shards_name(out_dir, shards, shards, true);
done:
    if (status) parts_remove(out_dir);
    close(held);
    shuffle_free(&job.shuffle);
    dt__block_free(&job.pending);
    dt_free(job.group);
    dt_free(job.time);
    dt__columns_free(&job.columns);
    dt__source_destroy(source);
    return status;
}
