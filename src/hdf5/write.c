/* Writes HDF5 files. A virtual file driver of this program collects the library's metadata in a
 * memory file, because writes there do not fail: after a failed write the library may crash when it
 * closes the file.
 *
 * Arrays are created with early allocation and without fill value. The library then gives them a
 * position but writes nothing there, so the memory file has a hole. Streaming puts the arrays into
 * these holes. */
#include "hdf5/write.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/limits.h"
#include "hdf5/library.h"

enum { TEXT_ATTRIBUTE = 60000, TEXT_MOST = 1 << 20 };

struct extent {
    uint64_t at, length; /* position in the file, and bytes */
    const void *data;    /* NULL: reserved space */
};

struct dt__h5_layout {
    const char *path; /* for messages */
    hid_t file;       /* -1 once it is closed */
    dt_status status; /* the first failure, with its message */
    char message[DT_ERROR_MAX];
    int memory;              /* unnamed file with the metadata; -1 once it is mapped */
    unsigned char *metadata; /* (end) the mapped metadata while streaming; NULL before */
    struct extent *extents;
    size_t nextents, extents_capacity;
    void **owned;
    size_t nowned, owned_capacity;
    uint64_t end; /* length of the file, including the user block */
    bool locked;  /* library_lock is held */
};

/* The library may not be thread-safe: only one file is laid out at a time. */
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- errors --------------------------------------------------------------------------------- */

void dt__h5_layout_fail(struct dt__h5_layout *layout, dt_status status)
{
    if (layout->status || !status) return;
    layout->status = status;
    snprintf(layout->message, sizeof layout->message, "%s", dt_error_text());
}

void *dt__h5_layout_alloc(struct dt__h5_layout *layout, size_t count, size_t size)
{
    void *memory = NULL;
    if (layout->status) return NULL;
    dt_status status = dt__grow(&layout->owned, &layout->owned_capacity, layout->nowned + 1,
                                sizeof *layout->owned, "a file's layout");
    if (!status) status = dt__alloc_backed(layout->path, count, size, "a file's layout", &memory);
    dt__h5_layout_fail(layout, status);
    if (memory) layout->owned[layout->nowned++] = memory;
    return memory;
}

/* Records that the library could not lay out `what`. Only lack of memory can cause this. */
static void layout_fail_library(struct dt__h5_layout *layout, const char *what)
{
    dt_status status = dt__h5_library_fail(DT_EIO, what);
    dt__h5_layout_fail(layout, dt_fail_prefix(status, "cannot be laid out: "));
}

/* ---- the driver ----------------------------------------------------------------------------- */

struct driver {
    H5FD_t shared; /* the part that the library uses */
    struct dt__h5_layout *layout;
};

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t length,
                           const void *bytes)
{
    (void)type, (void)dxpl;
    struct dt__h5_layout *layout = ((struct driver *)file)->layout;
    dt__h5_layout_fail(layout, dt__fd_write_at(layout->memory, "metadata", bytes, length, at));
    return 0;
}

static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t length,
                          void *bytes)
{
    (void)type, (void)dxpl;
    struct dt__h5_layout *layout = ((struct driver *)file)->layout;
    memset(bytes, 0, length);
    if (pread(layout->memory, bytes, length, (off_t)at) < 0)
        dt__h5_layout_fail(layout, dt_fail(DT_EIO, "metadata: %s", strerror(errno)));
    return 0;
}

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t most)
{
    (void)name, (void)flags, (void)most;
    struct dt__h5_layout *const *layout = H5.Pget_driver_info(access);
    struct driver *driver;
    if (!layout || dt__alloc(1, sizeof *driver, "a file's metadata", &driver)) return NULL;
    driver->layout = *layout;
    return &driver->shared;
}

static herr_t driver_close(H5FD_t *file)
{
    dt_free(file);
    return 0;
}

/* Returns the end of the file, up to which the library has allocated space. */
static haddr_t driver_get_end(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const struct driver *)file)->layout->end;
}

static herr_t driver_set_end(H5FD_t *file, H5FD_mem_t type, haddr_t at)
{
    (void)type;
    ((struct driver *)file)->layout->end = at;
    return 0;
}

static const H5FD_class_t DRIVER = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)600, /* larger than the library's own values; never stored */
#endif
    .name = "dtrain",
    .maxaddr = (haddr_t)1 << 62,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(struct dt__h5_layout *),
    .open = driver_open,
    .close = driver_close,
    .get_eoa = driver_get_end,
    .set_eoa = driver_set_end,
    .get_eof = driver_get_end,
    .read = driver_read,
    .write = driver_write,
};

/* ---- a file --------------------------------------------------------------------------------- */

/* Sets the file up to store no times, so that the same content gives the same bytes. */
dt_status dt__h5_layout_create(const char *path, size_t user_block, struct dt__h5_layout **out)
{
    /* The driver is registered once and never removed, because the library still uses it when it
     * closes a file. */
    static hid_t driver = -1;
    struct dt__h5_layout *layout;
    DT_TRY(dt__h5_load());
    DT_TRY(dt__alloc(1, sizeof *layout, "a file's layout", &layout));
    layout->path = path;
    layout->file = -1;
    layout->memory = memfd_create("dtrain-layout", MFD_CLOEXEC);
    pthread_mutex_lock(&library_lock);
    layout->locked = true;
    if (driver < 0) driver = H5.FDregister(&DRIVER);
    H5.Eset_auto2(H5E_DEFAULT, NULL, NULL); /* this setting belongs to each thread */
    hid_t access = H5.Pcreate(H5_CLASS(FILE_ACCESS)), create = H5.Pcreate(H5_CLASS(FILE_CREATE));
    if (layout->memory >= 0 && access >= 0 && create >= 0 && driver >= 0 &&
        H5.Pset_driver(access, driver, (void *)&layout) >= 0 &&
        H5.Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0 &&
        H5.Pset_userblock(create, user_block) >= 0 &&
        H5.Pset_attr_phase_change(create, 1000, 0) >= 0 &&
        H5.Pset_link_phase_change(create, 1000, 0) >= 0 &&
        H5.Pset_obj_track_times(create, false) >= 0)
        layout->file = H5.Fcreate("layout", H5F_ACC_TRUNC, create, access);
    if (create >= 0) H5.Pclose(create);
    if (access >= 0) H5.Pclose(access);
    if (layout->file < 0) {
        layout_fail_library(layout, "a file");
        dt_status status = dt_fail(layout->status, "%s: %s", path, layout->message);
        dt__h5_layout_free(layout);
        return status;
    }
    *out = layout;
    return DT_OK;
}

static void layout_close(struct dt__h5_layout *layout)
{
    if (layout->file >= 0 && H5.Fclose(layout->file) < 0) layout_fail_library(layout, "a file");
    layout->file = -1;
    if (layout->locked) pthread_mutex_unlock(&library_lock);
    layout->locked = false;
}

void dt__h5_layout_free(struct dt__h5_layout *layout)
{
    if (!layout) return;
    layout_close(layout);
    if (layout->memory >= 0) close(layout->memory);
    if (layout->metadata) munmap(layout->metadata, layout->end);
    for (size_t i = 0; i < layout->nowned; i++)
        dt__free_backed(layout->owned[i]);
    dt_free(layout->extents);
    dt_free(layout->owned);
    dt_free(layout);
}

/* ---- content -------------------------------------------------------------------------------- */

/* Makes the groups on the way to path[0..length), and the group of this path. */
static void groups_make(struct dt__h5_layout *layout, const char *path, size_t length)
{
    char name[DT__H5_PATH];
    for (size_t at = 2; at <= length && !layout->status; at++) {
        if (at < length && path[at] != '/') continue;
        snprintf(name, sizeof name, "%.*s", (int)at, path);
        if (H5.Lexists(layout->file, name, H5P_DEFAULT) > 0) continue;
        hid_t group = -1, plist = H5.Pcreate(H5_CLASS(GROUP_CREATE));
        if (plist >= 0 && H5.Pset_obj_track_times(plist, false) >= 0 &&
            H5.Pset_link_phase_change(plist, 1000, 0) >= 0)
            group = H5.Gcreate2(layout->file, name, H5P_DEFAULT, plist, H5P_DEFAULT);
        if (plist >= 0) H5.Pclose(plist);
        if (group < 0 || H5.Gclose(group) < 0) layout_fail_library(layout, name);
    }
}

void dt__h5_put_group(struct dt__h5_layout *layout, const char *path)
{
    groups_make(layout, path, strlen(path));
}

/* Makes an array without times, and allocates its space at once. Returns its position; HADDR_UNDEF
 * on failure. */
static haddr_t array_put(hid_t owner, const char *name, hid_t type, hid_t space)
{
    hid_t set = -1, plist = H5.Pcreate(H5_CLASS(DATASET_CREATE));
    if (plist >= 0 && H5.Pset_obj_track_times(plist, false) >= 0 &&
        H5.Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY) >= 0 &&
        H5.Pset_fill_time(plist, H5D_FILL_TIME_NEVER) >= 0)
        set = H5.Dcreate2(owner, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    haddr_t offset = set >= 0 ? H5.Dget_offset(set) : HADDR_UNDEF;
    if (set >= 0 && H5.Dclose(set) < 0) offset = HADDR_UNDEF;
    if (plist >= 0) H5.Pclose(plist);
    return offset;
}

void dt__h5_put(struct dt__h5_layout *layout, const struct dt__h5_item *item, uint64_t *out_offset)
{
    const char *path = item->path, *name = strrchr(path, item->rank ? '/' : '@') + 1;
    const int length = (int)(name - 1 - path); /* length of the owner's path */
    const bool text = item->type == DT__H5_TEXT;
    char owner[DT__H5_PATH];
    hsize_t extent[DT__H5_MAX_RANK];
    size_t bytes = text ? item->size : dt__h5_type_size(item->type);
    bool good = item->rank >= 0 && item->rank <= DT__H5_MAX_RANK;
    if (layout->status) return;
    for (int i = 0; good && i < item->rank; i++) {
        extent[i] = item->dims[i];
        good = extent[i] > 0 && dt__size_mul(bytes, extent[i], &bytes);
    }
    if (!good) dt__h5_layout_fail(layout, dt_fail(DT_EBUG, "%s: no proper dimensions", path));
    groups_make(layout, path, (size_t)length);
    dt__h5_layout_fail(layout,
                       dt__grow(&layout->extents, &layout->extents_capacity, layout->nextents + 1,
                                sizeof *layout->extents, "a file's layout"));
    if (layout->status) return;
    snprintf(owner, sizeof owner, "%.*s", length, path);
    hid_t object = H5.Oopen(layout->file, *owner ? owner : "/", H5P_DEFAULT);
    hid_t space = item->rank ? H5.Screate_simple(item->rank, extent, NULL) : H5.Screate(H5S_SCALAR);
    hid_t type = H5.Tcopy(text ? H5_ID(T_C_S1) : dt__h5_stored_type(item->type));
    good =
        object >= 0 && space >= 0 && type >= 0 &&
        (!text || (H5.Tset_size(type, item->size) >= 0 && H5.Tset_cset(type, H5T_CSET_UTF8) >= 0));
    if (good && item->rank) {
        const haddr_t offset = array_put(object, name, type, space);
        good = offset != HADDR_UNDEF;
        layout->extents[layout->nextents++] = (struct extent){offset, bytes, item->data};
        if (out_offset) *out_offset = offset;
    } else if (good) {
        hid_t attribute = H5.Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
        good = attribute >= 0 && H5.Awrite(attribute, type, item->data) >= 0;
        if (attribute >= 0 && H5.Aclose(attribute) < 0) good = false;
    }
    if (type >= 0) H5.Tclose(type);
    if (space >= 0) H5.Sclose(space);
    if (object >= 0) H5.Oclose(object);
    if (!good) layout_fail_library(layout, path);
}

bool dt__h5_names_fit(size_t count, size_t longest)
{
    size_t bytes;
    return longest < DT__H5_TEXT_BYTES && dt__size_mul(count, longest + 1, &bytes) &&
           bytes <= DT__H5_TEXTS_BYTES;
}

void dt__h5_put_names(struct dt__h5_layout *layout, const char *path, char *const *names,
                      size_t count)
{
    size_t size = 1;
    if (layout->status) return;
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) >= size) size = strlen(names[i]) + 1;
    if (!dt__h5_names_fit(count, size - 1))
        dt__h5_layout_fail(layout,
                           dt_fail(DT_EFORMAT, "%s: %zu names of up to %zu bytes are too much",
                                   path, count, size));
    char *table = dt__h5_layout_alloc(layout, count, size);
    if (!table) return;
    for (size_t i = 0; i < count; i++)
        memcpy(table + i * size, names[i], strlen(names[i]));
    const struct dt__h5_item item = {
        .path = path, .type = DT__H5_TEXT, .size = size, .rank = 1, .dims = {count}, .data = table};
    dt__h5_put(layout, &item, NULL);
}

void dt__h5_put_text(struct dt__h5_layout *layout, const char *path, const char *text)
{
    char name[DT__H5_PATH];
    size_t left = strlen(text), part;
    if (left > TEXT_MOST)
        dt__h5_layout_fail(
            layout, dt_fail(DT_EFORMAT, "%s of %zu bytes is too long to be kept", path, left));
    for (int number = 0; !layout->status && (number == 0 || left > 0); number++, text += part) {
        part = left < TEXT_ATTRIBUTE ? left : TEXT_ATTRIBUTE;
        left -= part;
        char *copy = dt__h5_layout_alloc(layout, part + 1, 1);
        if (!copy) return;
        memcpy(copy, text, part);
        const struct dt__h5_item item = {.path = dt__h5_numbered(name, path, number),
                                         .type = DT__H5_TEXT,
                                         .size = part + 1,
                                         .data = copy};
        dt__h5_put(layout, &item, NULL);
    }
}

/* ---- streaming ------------------------------------------------------------------------------ */

static int extent_order(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static dt_status stream_range(const unsigned char *from, uint64_t length, dt__h5_sink_fn *sink,
                              void *arg)
{
    for (uint64_t at = 0, part; at < length; at += part) {
        part = length - at < DT__H5_WRITE_BYTES ? length - at : DT__H5_WRITE_BYTES;
        DT_TRY(sink(arg, from ? from + at : NULL, (size_t)part));
    }
    return DT_OK;
}

dt_status dt__h5_stream(struct dt__h5_layout *layout, dt__h5_sink_fn *sink, void *arg)
{
    uint64_t at = 0;
    layout_close(layout);
    if (layout->status) return dt_fail(layout->status, "%s: %s", layout->path, layout->message);
    const int memory = layout->memory;
    layout->memory = -1;
    void *bytes = MAP_FAILED;
    if (!ftruncate(memory, (off_t)layout->end))
        bytes = mmap(NULL, layout->end, PROT_READ, MAP_SHARED, memory, 0);
    if (bytes != MAP_FAILED) layout->metadata = bytes;
    if (close(memory) || !layout->metadata)
        return dt_fail(DT_EMEMORY, "%s: no memory for its metadata: %s", layout->path,
                       strerror(errno));
    if (layout->nextents)
        qsort(layout->extents, layout->nextents, sizeof *layout->extents, extent_order);
    for (size_t i = 0; i < layout->nextents; i++) {
        const struct extent *extent = &layout->extents[i];
        DT_TRY(stream_range(layout->metadata + at, extent->at - at, sink, arg));
        DT_TRY(stream_range(extent->data, extent->length, sink, arg));
        at = extent->at + extent->length;
    }
    return stream_range(layout->metadata + at, layout->end - at, sink, arg);
}
