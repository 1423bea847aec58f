/* A virtual file driver of our own under the library takes its metadata into pages of memory.
 *
 * Arrays are created with early allocation and no fill value: the library gives them a place and
 * writes nothing there. Streaming merges the pages with the arrays, by place. */
#include "hdf5/write.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "hdf5/library.h"

enum { PAGE = 4096, MOST_NAME = 1 << 16, MOST_TEXTS = 1 << 28 };

struct page {
    uint64_t at; /* multiple of PAGE */
    unsigned char bytes[PAGE];
};

struct extent {
    uint64_t at, length; /* in the file */
    const void *data;    /* NULL: room alone */
};

struct dt__h5_layout {
    hid_t file;       /* -1 once the layout has ended */
    dt_status status; /* the first failure, with its message */
    char message[DT_ERROR_MAX];
    struct page **pages; /* ascending */
    size_t npages, pages_capacity;
    struct extent *extents; /* ascending once the layout has ended */
    size_t nextents, extents_capacity;
    void **owned; /* tables of names */
    size_t nowned, owned_capacity;
    uint64_t end; /* length of the file, user block and all */
    bool locked;  /* library_lock is held */
};

/* A library that is not made for threads lays out one file at a time. */
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- errors --------------------------------------------------------------------------------- */

void dt__h5_layout_fail(struct dt__h5_layout *layout, dt_status status)
{
    if (layout->status || !status) return;
    layout->status = status;
    snprintf(layout->message, sizeof layout->message, "%s", dt_error_text());
}

/* The library could not lay `what` out: of memory alone it could run short. */
static void layout_fail_library(struct dt__h5_layout *layout, const char *what)
{
    dt_status status = dt__h5_library_fail(DT_EIO, what);
    dt__h5_layout_fail(layout, dt_fail_prefix(status, "cannot be laid out: "));
}

/* ---- the driver ----------------------------------------------------------------------------- */

struct driver {
    H5FD_t shared; /* the library's own */
    struct dt__h5_layout *layout;
    haddr_t eoa, eof;
};

/* The page that begins at `at`; NULL: there is none yet, and its place among them is *out_index. */
static struct page *page_find(const struct dt__h5_layout *layout, uint64_t at, size_t *out_index)
{
    size_t low = 0, high = layout->npages;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (layout->pages[middle]->at < at)
            low = middle + 1;
        else
            high = middle;
    }
    *out_index = low;
    return low < layout->npages && layout->pages[low]->at == at ? layout->pages[low] : NULL;
}

/* Never fails: the library may crash over a close that did. The layout has its failure, and is
 * given up. */
static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t length,
                           const void *bytes)
{
    (void)type, (void)dxpl;
    struct driver *driver = (struct driver *)file;
    struct dt__h5_layout *layout = driver->layout;
    for (const char *from = bytes; length > 0;) {
        const size_t inside = at % PAGE, part = length < PAGE - inside ? length : PAGE - inside;
        size_t index;
        struct page *page = page_find(layout, at - inside, &index);
        if (!page) {
            dt_status status = dt_grow(&layout->pages, &layout->pages_capacity, layout->npages + 1,
                                       sizeof *layout->pages, "a file's metadata");
            if (!status) status = dt_alloc(1, sizeof *page, "a file's metadata", &page);
            dt__h5_layout_fail(layout, status);
            if (page) {
                page->at = at - inside;
                memmove(layout->pages + index + 1, layout->pages + index,
                        (layout->npages++ - index) * sizeof *layout->pages);
                layout->pages[index] = page;
            }
        }
        if (page) memcpy(page->bytes + inside, from, part);
        from += part;
        at += part;
        length -= part;
    }
    if (at > driver->eof) driver->eof = at;
    return 0;
}

static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t length,
                          void *bytes)
{
    (void)type, (void)dxpl;
    const struct dt__h5_layout *layout = ((struct driver *)file)->layout;
    for (char *to = bytes; length > 0;) {
        size_t inside = at % PAGE, part = length < PAGE - inside ? length : PAGE - inside, index;
        const struct page *page = page_find(layout, at - inside, &index);
        if (page)
            memcpy(to, page->bytes + inside, part);
        else
            memset(to, 0, part);
        to += part;
        at += part;
        length -= part;
    }
    return 0;
}

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t most)
{
    (void)name, (void)flags, (void)most;
    struct dt__h5_layout *const *layout = H5Pget_driver_info(access);
    struct driver *driver;
    if (!layout || dt_alloc(1, sizeof *driver, "a file's metadata", &driver)) return NULL;
    driver->layout = *layout;
    return &driver->shared;
}

static herr_t driver_close(H5FD_t *file)
{
    struct driver *driver = (struct driver *)file;
    driver->layout->end = driver->eoa > driver->eof ? driver->eoa : driver->eof;
    dt_free(driver);
    return 0;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const struct driver *)file)->eoa;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t at)
{
    (void)type;
    ((struct driver *)file)->eoa = at;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const struct driver *)file)->eof;
}

static const H5FD_class_t DRIVER = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)600, /* beyond the library's own; it is never stored */
#endif
    .name = "dtrain",
    .maxaddr = (haddr_t)1 << 62,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(struct dt__h5_layout *),
    .open = driver_open,
    .close = driver_close,
    .query = driver_query,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .read = driver_read,
    .write = driver_write,
};

/* ---- a file --------------------------------------------------------------------------------- */

/* No times: the same content gives the same bytes. */
dt_status dt__h5_layout_create(size_t user_block, struct dt__h5_layout **out)
{
    /* Registered once and for good: the library closes a file after it has let go of the driver. */
    static hid_t driver = -1;
    struct dt__h5_layout *layout;
    hbool_t threadsafe = false;
    DT_TRY(dt_alloc(1, sizeof *layout, "a file's layout", &layout));
    layout->file = -1;
    pthread_mutex_lock(&library_lock);
    layout->locked = H5is_library_threadsafe(&threadsafe) < 0 || !threadsafe;
    if (driver < 0) driver = H5FDregister(&DRIVER);
    const hid_t id = driver;
    if (!layout->locked) pthread_mutex_unlock(&library_lock);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); /* a setting of each thread */
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
    if (access >= 0 && create >= 0 && id >= 0 && H5Pset_driver(access, id, (void *)&layout) >= 0 &&
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0 &&
        H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0 &&
        H5Pset_userblock(create, user_block) >= 0 &&
        H5Pset_attr_phase_change(create, 1000, 0) >= 0 &&
        H5Pset_link_phase_change(create, 1000, 0) >= 0 &&
        H5Pset_obj_track_times(create, false) >= 0)
        layout->file = H5Fcreate("layout", H5F_ACC_TRUNC, create, access);
    if (create >= 0) H5Pclose(create);
    if (access >= 0) H5Pclose(access);
    if (layout->file < 0) {
        layout_fail_library(layout, "a file");
        dt_status status = dt_fail(layout->status, "%s", layout->message);
        dt__h5_layout_free(layout);
        return status;
    }
    *out = layout;
    return DT_OK;
}

static void layout_close(struct dt__h5_layout *layout)
{
    if (layout->file >= 0 && H5Fclose(layout->file) < 0) layout_fail_library(layout, "a file");
    layout->file = -1;
    if (layout->locked) pthread_mutex_unlock(&library_lock);
    layout->locked = false;
}

void dt__h5_layout_free(struct dt__h5_layout *layout)
{
    if (!layout) return;
    layout_close(layout);
    for (size_t i = 0; i < layout->npages; i++)
        dt_free(layout->pages[i]);
    for (size_t i = 0; i < layout->nowned; i++)
        dt_free(layout->owned[i]);
    dt_free(layout->pages);
    dt_free(layout->extents);
    dt_free(layout->owned);
    dt_free(layout);
}

static int extent_order(const void *a, const void *b)
{
    const struct extent *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

dt_status dt__h5_layout_end(struct dt__h5_layout *layout, uint64_t *out_length)
{
    layout_close(layout);
    if (layout->status) return dt_fail(layout->status, "%s", layout->message);
    if (layout->nextents)
        qsort(layout->extents, layout->nextents, sizeof *layout->extents, extent_order);
    *out_length = layout->end;
    return DT_OK;
}

/* ---- content -------------------------------------------------------------------------------- */

/* Texts of `size` bytes with their NUL. */
static hid_t text_type(size_t size)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type < 0) return type;
    if (H5Tset_size(type, size) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0) return type;
    H5Tclose(type);
    return -1;
}

void dt__h5_put_group(struct dt__h5_layout *layout, const char *path)
{
    if (layout->status || H5Lexists(layout->file, path, H5P_DEFAULT) > 0) return;
    hid_t group = -1, plist = H5Pcreate(H5P_GROUP_CREATE);
    if (plist >= 0 && H5Pset_obj_track_times(plist, false) >= 0 &&
        H5Pset_link_phase_change(plist, 1000, 0) >= 0)
        group = H5Gcreate2(layout->file, path, H5P_DEFAULT, plist, H5P_DEFAULT);
    if (plist >= 0) H5Pclose(plist);
    if (group < 0 || H5Gclose(group) < 0) layout_fail_library(layout, path);
}

/* Makes room for an array; its bytes are streamed. */
static void layout_array(struct dt__h5_layout *layout, const char *path, hid_t type, int rank,
                         const uint64_t *dims, const void *data, uint64_t *out_offset)
{
    hsize_t extent[DT__H5_MAX_RANK];
    size_t bytes = H5Tget_size(type);
    bool good = rank >= 1 && rank <= DT__H5_MAX_RANK;
    for (int i = 0; good && i < rank; i++) {
        extent[i] = dims[i];
        good = dims[i] > 0 && dt_size_mul(bytes, dims[i], &bytes);
    }
    if (!good) {
        dt__h5_layout_fail(layout, dt_fail(DT_EBUG, "%s: no proper dimensions", path));
        return;
    }
    hid_t set = -1, space = H5Screate_simple(rank, extent, NULL);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    if (space >= 0 && plist >= 0 && H5Pset_obj_track_times(plist, false) >= 0 &&
        H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY) >= 0 &&
        H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER) >= 0)
        set = H5Dcreate2(layout->file, path, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    const haddr_t offset = set >= 0 ? H5Dget_offset(set) : HADDR_UNDEF;
    good = set >= 0 && H5Dclose(set) >= 0 && offset != HADDR_UNDEF;
    if (plist >= 0) H5Pclose(plist);
    if (space >= 0) H5Sclose(space);
    if (!good)
        layout_fail_library(layout, path);
    else
        dt__h5_layout_fail(layout, dt_grow(&layout->extents, &layout->extents_capacity,
                                           layout->nextents + 1, sizeof *layout->extents,
                                           "a file's layout"));
    if (layout->status) return;
    layout->extents[layout->nextents++] = (struct extent){offset, bytes, data};
    if (out_offset) *out_offset = offset;
}

void dt__h5_put_array(struct dt__h5_layout *layout, const char *path, enum dt__h5_type type,
                      int rank, const uint64_t *dims, const void *data, uint64_t *out_offset)
{
    if (layout->status) return;
    layout_array(layout, path, dt__h5_stored_type(type), rank, dims, data, out_offset);
}

/* As a table of texts of one size, which the layout owns. */
void dt__h5_put_names(struct dt__h5_layout *layout, const char *path, char *const *names,
                      size_t count)
{
    char *table = NULL;
    size_t size = 1, bytes;
    dt_status status;
    if (layout->status) return;
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) >= size) size = strlen(names[i]) + 1;
    if (size > MOST_NAME || !dt_size_mul(count, size, &bytes) || bytes > MOST_TEXTS)
        DT_GUARD(dt_fail(DT_EFORMAT, "%s: %zu names of up to %zu bytes are too much", path, count,
                         size));
    DT_GUARD(dt_grow(&layout->owned, &layout->owned_capacity, layout->nowned + 1, sizeof(void *),
                     "names"));
    DT_GUARD(dt_alloc(count, size, "names", &table));
    layout->owned[layout->nowned++] = table;
    for (size_t i = 0; i < count; i++)
        memcpy(table + i * size, names[i], strlen(names[i]));
    hid_t type = text_type(size);
    if (type < 0)
        layout_fail_library(layout, path);
    else
        layout_array(layout, path, type, 1, (const uint64_t[]){count}, table, NULL);
    if (type >= 0) H5Tclose(type);
done:
    dt__h5_layout_fail(layout, status);
}

static void layout_attribute(struct dt__h5_layout *layout, const char *path, const char *name,
                             hid_t type, const void *value)
{
    hid_t object = H5Oopen(layout->file, path, H5P_DEFAULT), space = H5Screate(H5S_SCALAR);
    hid_t attribute = object < 0 || space < 0
                          ? -1
                          : H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, type, value) >= 0;
    if (attribute >= 0 && H5Aclose(attribute) < 0) good = false;
    if (space >= 0) H5Sclose(space);
    if (object >= 0) H5Oclose(object);
    if (!good) layout_fail_library(layout, name);
}

void dt__h5_put_number(struct dt__h5_layout *layout, const char *path, const char *name,
                       enum dt__h5_type type, const void *value)
{
    if (!layout->status) layout_attribute(layout, path, name, dt__h5_stored_type(type), value);
}

void dt__h5_put_text(struct dt__h5_layout *layout, const char *path, const char *name,
                     const char *text, size_t length)
{
    char *copy;
    if (layout->status) return;
    dt__h5_layout_fail(layout, dt_alloc(length + 1, 1, "a text", &copy));
    if (layout->status) return;
    memcpy(copy, text, length);
    hid_t type = text_type(length + 1);
    if (type < 0)
        layout_fail_library(layout, name);
    else
        layout_attribute(layout, path, name, type, copy);
    if (type >= 0) H5Tclose(type);
    dt_free(copy);
}

/* ---- streaming ------------------------------------------------------------------------------ */

/* Metadata, zeros where there is none. */
static dt_status stream_pages(const struct dt__h5_layout *layout, uint64_t at, uint64_t end,
                              dt__h5_sink_fn *sink, void *arg)
{
    static const unsigned char zeros[PAGE];
    while (at < end) {
        uint64_t inside = at % PAGE, part = PAGE - inside;
        size_t index;
        const struct page *page = page_find(layout, at - inside, &index);
        if (part > end - at) part = end - at;
        DT_TRY(sink(arg, page ? page->bytes + inside : zeros, (size_t)part));
        at += part;
    }
    return DT_OK;
}

dt_status dt__h5_stream(const struct dt__h5_layout *layout, dt__h5_sink_fn *sink, void *arg)
{
    uint64_t at = 0;
    for (size_t i = 0; i < layout->nextents; i++) {
        const struct extent *extent = &layout->extents[i];
        DT_TRY(stream_pages(layout, at, extent->at, sink, arg));
        const unsigned char *from = extent->data;
        for (uint64_t left = extent->length; left > 0;) {
            size_t part = left < DT__H5_WRITE_BYTES ? (size_t)left : DT__H5_WRITE_BYTES;
            DT_TRY(sink(arg, from, part));
            if (from) from += part;
            left -= part;
        }
        at = extent->at + extent->length;
    }
    return stream_pages(layout, at, layout->end, sink, arg);
}

/* ---- version -------------------------------------------------------------------------------- */

const char *dt__h5_version(char buffer[16])
{
    unsigned major = 0, minor = 0, release = 0;
    H5get_libversion(&major, &minor, &release);
    snprintf(buffer, 16, "%u.%u.%u", major, minor, release);
    return buffer;
}
