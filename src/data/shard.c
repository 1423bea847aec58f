/* Shuffling the training data into shards, HDF5 files whose rows are written by us.
 *
 * The HDF5 writer lays a file out, with room for /x and /y; the rows then go to their place by
 * plain writes, so that errors of the disk are ours and no byte is copied twice. Sparse rows are
 * written out in full. */
#include <errno.h>
#include <glob.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/limits.h"
#include "data/reader.h"
#include "data/shuffle.h"
#include "hdf5/write.h"

struct job {
    const struct dt_source *source;
    const char *dir;
    int shards;
    uint64_t memory, seed;
    struct dt__shuffle *shuffle;
    unsigned char *row; /* on its way into the shuffle */
};

/* ---- one shard ------------------------------------------------------------------------------ */

struct shard {
    const struct job *job;
    uint64_t rows;
    int fd;
    const char *path;
    uint64_t written;         /* bytes of the file, while it is laid out */
    uint64_t x_at, y_at;      /* bytes: where the next rows go */
    struct dt__block pending; /* rows not yet written */
};

/* All but the rows, which come later. */
static dt_status shard_write_part(void *arg, const void *bytes, size_t length)
{
    struct shard *shard = arg;
    uint64_t at = shard->written;
    shard->written += length;
    return bytes ? dt_fd_write_at(shard->fd, shard->path, bytes, length, at) : DT_OK;
}

/* Room for the rows, and the names. */
static dt_status shard_lay_out(struct shard *shard)
{
    const struct dt_schema *schema = &shard->job->source->schema;
    const struct dt__layout *layout = &shard->job->source->layout;
    const uint64_t x[2] = {shard->rows, (uint64_t)layout->features};
    const uint64_t y[2] = {shard->rows, (uint64_t)layout->targets};
    uint64_t length;
    struct dt__h5_layout *file;
    DT_TRY(dt__h5_layout_create(0, &file));
    dt__h5_put_array(file, "/x", layout->bytes ? DT__H5_U8 : DT__H5_F32, 2, x, NULL, &shard->x_at);
    dt__h5_put_array(file, "/y", layout->targets ? DT__H5_F32 : DT__H5_I32,
                     layout->targets > 1 ? 2 : 1, y, NULL, &shard->y_at);
    if (schema->feature_names)
        dt__h5_put_names(file, "/feature_names", schema->feature_names, (size_t)schema->features);
    if (schema->label_names)
        dt__h5_put_names(file, "/label_names", schema->label_names, (size_t)schema->classes);
    if (schema->columns) dt__h5_layout_fail(file, dt__columns_put(file, DT__SHARD_GROUP, schema));
    dt_status status = dt__h5_layout_end(file, &length);
    if (status) dt_fail_prefix(status, "%s: ", shard->path);
    if (!status) status = dt__h5_stream(file, shard_write_part, shard);
    dt__h5_layout_free(file);
    if (!status && ftruncate(shard->fd, (off_t)length))
        status = dt_fail(DT_EIO, "%s: %s", shard->path, strerror(errno));
    return status;
}

static dt_status shard_flush(struct shard *shard)
{
    const struct dt__layout *layout = &shard->job->source->layout;
    const size_t x = shard->pending.rows * dt__layout_x(layout);
    const size_t y = shard->pending.rows * dt__layout_y(layout);
    DT_TRY(dt_fd_write_at(shard->fd, shard->path, shard->pending.x, x, shard->x_at));
    DT_TRY(dt_fd_write_at(shard->fd, shard->path, shard->pending.y, y, shard->y_at));
    shard->x_at += x;
    shard->y_at += y;
    shard->pending.rows = 0;
    return DT_OK;
}

/* The next rows of the shuffle. */
static dt_status shard_fill(int fd, const char *path, void *arg)
{
    struct shard *shard = arg;
    const struct dt__layout *layout = &shard->job->source->layout;
    struct dt__block *pending = &shard->pending;
    const unsigned char *row;
    shard->fd = fd;
    shard->path = path;
    DT_TRY(shard_lay_out(shard));
    DT_TRY(dt__block_alloc(layout, DT__SHARD_BYTES / dt__layout_row(layout) + 1, 0, pending));
    dt_status status = DT_OK;
    for (uint64_t i = 0; i < shard->rows && !status; i++) {
        DT_GUARD(dt__shuffle_take(shard->job->shuffle, &row));
        memcpy(dt__block_x(layout, pending, pending->rows), row, dt__layout_x(layout));
        memcpy(dt__block_y(layout, pending, pending->rows++), row + dt__layout_x(layout),
               dt__layout_y(layout));
        if (pending->rows == pending->capacity) status = shard_flush(shard);
    }
    if (!status) status = shard_flush(shard);
done:
    dt__block_free(pending);
    return status;
}

/* Complete and synced under its name, or not there. */
static dt_status job_write_shard(const struct job *job, int number)
{
    const unsigned __int128 all = job->source->rows;
    const uint64_t begin = (uint64_t)(all * (unsigned)number / (unsigned)job->shards);
    const uint64_t end = (uint64_t)(all * ((unsigned)number + 1) / (unsigned)job->shards);
    struct shard shard = {.job = job, .rows = end - begin};
    char *path;
    DT_TRY(dt_format(&path, "%s/shard-%05d-of-%05d.h5", job->dir, number, job->shards));
    dt_status status = dt_file_write_by(path, shard_fill, &shard, NULL, NULL);
    dt_free(path);
    return status;
}

/* ---- in ------------------------------------------------------------------------------------- */

static dt_status job_shuffle_block(void *arg, const struct dt__block *block)
{
    struct job *job = arg;
    const struct dt__layout *layout = &job->source->layout;
    for (size_t i = 0; i < block->rows; i++) {
        memcpy(job->row, dt__block_x(layout, block, i), dt__layout_x(layout));
        memcpy(job->row + dt__layout_x(layout), dt__block_y(layout, block, i),
               dt__layout_y(layout));
        DT_TRY(dt__shuffle_put(job->shuffle, job->row));
    }
    return DT_OK;
}

/* ---- the whole ------------------------------------------------------------------------------ */

dt_status dt_shard_write(const struct dt_config *config, const char *out_dir, int shards)
{
    struct dt_config plain = *config; /* texts are shared */
    struct job job = {.dir = out_dir, .shards = shards};
    struct dt_source *source;
    char *pattern;
    glob_t found;
    if (*config->data.weight)
        return dt_fail(DT_EUSAGE, "data.weight=%s: shards have no weights", config->data.weight);
    plain.data.eval_fraction = 0;
    plain.data.normalize = DT_NORMALIZE_NONE;
    plain.data.normalize_target = DT_NORMALIZE_TARGET_NO;
    DT_TRY(dt_dir_make(out_dir));
    DT_TRY(dt_format(&pattern, "%s/shard-*.h5", out_dir));
    int code = glob(pattern, GLOB_NOSORT, NULL, &found);
    dt_free(pattern);
    if (!code) globfree(&found);
    if (code != GLOB_NOMATCH)
        return dt_fail(DT_EIO, code ? "%s: cannot be read" : "%s: there are shards in it already",
                       out_dir);
    DT_TRY(dt_source_survey(&plain, DT_PART_TRAIN, NULL, &source));
    source->layout.dense = source->layout.features;
    job.source = source;
    job.memory = (uint64_t)config->data.memory_mb << 20;
    job.seed = (uint64_t)config->run.seed;
    dt_status status;
    if (shards < 1 || (uint64_t)shards > source->rows)
        DT_GUARD(
            dt_fail(DT_EUSAGE, "%d shards of %llu rows", shards, (unsigned long long)source->rows));
    /* The shards and the temporary file together. */
    struct statvfs disk;
    uint64_t bytes = job.source->rows * dt__layout_row(&job.source->layout);
    if (statvfs(job.dir, &disk)) DT_GUARD(dt_fail(DT_EIO, "%s: %s", job.dir, strerror(errno)));
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (left / 2 < bytes)
        DT_GUARD(dt_fail(DT_EIO, "%s: the disk has %llu MiB left, shuffling takes %llu", job.dir,
                         (unsigned long long)(left >> 20), (unsigned long long)(bytes >> 19) + 1));
    DT_GUARD(dt__shuffle_create(out_dir, job.seed, source->rows, dt__layout_row(&source->layout),
                                job.memory, &job.shuffle));
    const size_t width = dt__layout_row(&source->layout), step = DT__SHARD_BYTES / width + 1;
    DT_GUARD(dt_alloc(1, width, "row", &job.row));
    DT_GUARD(dt__source_walk(source, step, step, job_shuffle_block, &job));
    for (int shard = 0; shard < shards; shard++)
        DT_GUARD(job_write_shard(&job, shard));
done:
    dt__shuffle_destroy(job.shuffle);
    dt_free(job.row);
    dt_source_destroy(source);
    return status;
}
