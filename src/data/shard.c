/* Shuffling the training data into shards. */
#include <errno.h>
#include <glob.h>
#include <string.h>
#include <sys/statvfs.h>

#include "data/reader.h"
#include "data/scatter.h"
#include "data/shard_file.h"

enum { READ_BYTES = 1 << 20 };

struct job {
    const struct dt_source *source;
    const char *dir;
    int shards;
    uint64_t memory, seed;
    struct dt__scatter *scatter;
};

/* ---- the directory -------------------------------------------------------------------------- */

static dt_status check_empty(const char *dir)
{
    char *pattern;
    glob_t found;
    DT_TRY(dt_format(&pattern, "%s/shard-*.h5", dir));
    int code = glob(pattern, GLOB_NOSORT, NULL, &found);
    dt_free(pattern);
    if (code == GLOB_NOMATCH) return DT_OK;
    if (code) return dt_fail(DT_EIO, "%s: cannot be read", dir);
    globfree(&found);
    return dt_fail(DT_EIO, "%s: there are shards in it already", dir);
}

/* The shards and the temporary file together. */
static dt_status check_space(const struct job *job)
{
    struct statvfs disk;
    uint64_t bytes = job->source->rows * dt__layout_row(&job->source->layout);
    if (statvfs(job->dir, &disk)) return dt_fail(DT_EIO, "%s: %s", job->dir, strerror(errno));
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (left / 2 >= bytes) return DT_OK;
    return dt_fail(DT_EIO, "%s: the disk has %llu MiB left, shuffling takes %llu", job->dir,
                   (unsigned long long)(left >> 20), (unsigned long long)(bytes >> 19) + 1);
}

/* ---- in ------------------------------------------------------------------------------------- */

static dt_status put_rows(struct job *job, const struct dt__block *block, size_t rows,
                          unsigned char *row)
{
    const struct dt__layout *layout = &job->source->layout;
    for (size_t i = 0; i < rows; i++) {
        struct dt__block from = dt__block_at(layout, *block, i);
        memcpy(row, from.x, dt__layout_x(layout));
        memcpy(row + dt__layout_x(layout), from.y, dt__layout_y(layout));
        DT_TRY(dt__scatter_put(job->scatter, row));
    }
    return DT_OK;
}

static dt_status scatter(struct job *job)
{
    const struct dt_source *source = job->source;
    size_t width = dt__layout_row(&source->layout), step = READ_BYTES / width + 1;
    struct dt__block block = {0};
    struct dt__cursor *cursor = NULL;
    unsigned char *row = NULL;
    dt_status status = DT_OK;
    DT_GUARD(dt__block_alloc(&source->layout, step, &block));
    DT_GUARD(dt_alloc(1, width, "row", &row));
    DT_GUARD(dt__cursor_open(source, false, &cursor));
    for (uint64_t at = 0; at < source->rows; at += step) {
        size_t rows = source->rows - at < step ? (size_t)(source->rows - at) : step;
        DT_GUARD(dt__cursor_read(cursor, at, rows, block));
        DT_GUARD(put_rows(job, &block, rows, row));
    }
done:
    dt__cursor_close(cursor);
    dt__block_free(&block);
    dt_free(row);
    return status;
}

/* ---- out ------------------------------------------------------------------------------------ */

static uint64_t shard_begin(const struct job *job, int shard)
{
    return (uint64_t)((unsigned __int128)job->source->rows * (unsigned)shard /
                      (unsigned)job->shards);
}

static dt_status copy_rows(struct job *job, struct dt__shard_file *file, uint64_t rows)
{
    const unsigned char *row;
    for (uint64_t i = 0; i < rows; i++) {
        DT_TRY(dt__scatter_take(job->scatter, &row));
        DT_TRY(dt__shard_file_put(file, row));
    }
    return DT_OK;
}

static dt_status write_shard(struct job *job, int shard)
{
    struct dt__shard_file file;
    uint64_t rows = shard_begin(job, shard + 1) - shard_begin(job, shard);
    char *path;
    DT_TRY(dt_format(&path, "%s/shard-%05d-of-%05d.h5", job->dir, shard, job->shards));
    dt_status status = dt__shard_file_create(&file, path, job->source, rows);
    dt_free(path);
    if (status) return status;
    status = copy_rows(job, &file, rows);
    if (!status) return dt__shard_file_finish(&file);
    dt__shard_file_drop(&file);
    return status;
}

static dt_status write_all(struct job *job)
{
    const struct dt_source *source = job->source;
    DT_TRY(check_space(job));
    DT_TRY(dt__scatter_create(job->dir, job->seed, source->rows, dt__layout_row(&source->layout),
                              job->memory, &job->scatter));
    DT_TRY(scatter(job));
    for (int shard = 0; shard < job->shards; shard++)
        DT_TRY(write_shard(job, shard));
    return dt_dir_sync(job->dir);
}

/* ---- the whole ------------------------------------------------------------------------------ */

dt_status dt_shard_write(const struct dt_config *config, const char *out_dir, int shards)
{
    struct dt_config plain = *config; /* texts are shared */
    struct job job = {.dir = out_dir, .shards = shards};
    struct dt_source *source;
    plain.data.eval_fraction = 0;
    plain.data.normalize = DT_NORMALIZE_NONE;
    DT_TRY(dt_dir_make(out_dir));
    DT_TRY(check_empty(out_dir));
    DT_TRY(dt_source_survey(&plain, DT_PART_TRAIN, NULL, &source));
    job.source = source;
    job.memory = (uint64_t)config->data.memory_mb << 20;
    job.seed = (uint64_t)config->run.seed;
    dt_status status = DT_OK;
    if (shards < 1 || (uint64_t)shards > source->rows)
        status =
            dt_fail(DT_EUSAGE, "%d shards of %llu rows", shards, (unsigned long long)source->rows);
    if (!status) status = write_all(&job);
    dt__scatter_destroy(job.scatter);
    dt_source_destroy(source);
    return status;
}
