/* A shard. */
#include "data/shard_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/fd.h"
#include "data/h5.h"

enum { PENDING_BYTES = 1 << 20 };

/* ---- layout --------------------------------------------------------------------------------- */

/* A contiguous data set that is allocated and not filled; *at: where its bytes go. */
static dt_status lay_out(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims,
                         uint64_t *at)
{
    hid_t space = H5Screate_simple(rank, dims, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
    hid_t set = -1;
    if (space >= 0 && plist >= 0 && H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY) >= 0 &&
        H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER) >= 0)
        set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    haddr_t offset = set >= 0 ? H5Dget_offset(set) : HADDR_UNDEF;
    bool good = set >= 0 && H5Dclose(set) >= 0 && offset != HADDR_UNDEF;
    if (plist >= 0) H5Pclose(plist);
    if (space >= 0) H5Sclose(space);
    *at = offset;
    return good ? DT_OK : dt__h5_fail(DT_EIO, "%s cannot be laid out", name);
}

static dt_status lay_out_all(struct dt__shard_file *file, hid_t id, const struct dt_source *source,
                             uint64_t rows)
{
    const struct dt__layout *layout = &source->layout;
    const struct dt_schema *schema = &source->schema;
    hsize_t x[2] = {rows, (hsize_t)layout->features}, y[2] = {rows, (hsize_t)layout->targets};
    hid_t x_type = layout->bytes ? H5T_STD_U8LE : H5T_IEEE_F32LE;
    hid_t y_type = layout->targets ? H5T_IEEE_F32LE : H5T_STD_I32LE;
    DT_TRY(lay_out(id, "/x", x_type, 2, x, &file->x_at));
    DT_TRY(lay_out(id, "/y", y_type, layout->targets > 1 ? 2 : 1, y, &file->y_at));
    if (schema->feature_names)
        DT_TRY(dt__h5_names_put(id, "/feature_names", schema->feature_names,
                                (size_t)schema->features));
    if (schema->label_names)
        DT_TRY(dt__h5_names_put(id, "/label_names", schema->label_names, (size_t)schema->classes));
    return DT_OK;
}

static dt_status make_file(struct dt__shard_file *file, const struct dt_source *source,
                           uint64_t rows)
{
    dt__h5_quiet();
    hid_t id = H5Fcreate(file->temporary, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (id < 0) return dt__h5_fail(DT_EIO, "%s: cannot be created", file->temporary);
    dt_status status = lay_out_all(file, id, source, rows);
    if (H5Fclose(id) < 0 && !status) status = dt__h5_fail(DT_EIO, "cannot be closed");
    if (status) return dt_fail_prefix(status, "%s: ", file->temporary);
    file->fd = open(file->temporary, O_WRONLY | O_CLOEXEC);
    if (file->fd < 0) return dt_fail(DT_EIO, "%s: %s", file->temporary, strerror(errno));
    size_t pending = PENDING_BYTES / dt__layout_row(&file->layout) + 1;
    return dt__block_alloc(&file->layout, pending, &file->pending);
}

dt_status dt__shard_file_create(struct dt__shard_file *file, const char *path,
                                const struct dt_source *source, uint64_t rows)
{
    *file = (struct dt__shard_file){.layout = source->layout, .fd = -1};
    dt_status status = dt_strdup(path, &file->path);
    if (!status) status = dt_format(&file->temporary, "%s.partial", path);
    if (!status) status = make_file(file, source, rows);
    if (status) dt__shard_file_drop(file);
    return status;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static dt_status flush(struct dt__shard_file *file)
{
    size_t x = file->npending * dt__layout_x(&file->layout);
    size_t y = file->npending * dt__layout_y(&file->layout);
    DT_TRY(dt__fd_write(file->fd, file->path, file->pending.x, x, file->x_at));
    DT_TRY(dt__fd_write(file->fd, file->path, file->pending.y, y, file->y_at));
    file->x_at += x;
    file->y_at += y;
    file->npending = 0;
    return DT_OK;
}

dt_status dt__shard_file_put(struct dt__shard_file *file, const unsigned char *row)
{
    size_t x = dt__layout_x(&file->layout), y = dt__layout_y(&file->layout);
    struct dt__block to = dt__block_at(&file->layout, file->pending, file->npending++);
    memcpy(to.x, row, x);
    memcpy(to.y, row + x, y);
    return file->npending > PENDING_BYTES / (x + y) ? flush(file) : DT_OK;
}

static void forget(struct dt__shard_file *file)
{
    if (file->fd >= 0) close(file->fd);
    dt__block_free(&file->pending);
    dt_free(file->path);
    dt_free(file->temporary);
    *file = (struct dt__shard_file){.fd = -1};
}

void dt__shard_file_drop(struct dt__shard_file *file)
{
    if (file->temporary) unlink(file->temporary);
    forget(file);
}

dt_status dt__shard_file_finish(struct dt__shard_file *file)
{
    dt_status status = flush(file);
    bool good = !status && !fsync(file->fd);
    if (close(file->fd)) good = false;
    file->fd = -1;
    if (good) good = !rename(file->temporary, file->path);
    if (!good && !status) status = dt_fail(DT_EIO, "%s: %s", file->path, strerror(errno));
    if (status)
        dt__shard_file_drop(file);
    else
        forget(file);
    return status;
}
