/* HDF5's library in a reader process: opens a file, walks through all of it to make a table, and
 * reads rows.
 *
 * All of this runs in a process that may crash. To protect the reader, some things are refused:
 * links to and storage in other files, types that this program does not use, and arrays that claim
 * more than the file can hold. The walk closes what it opens, since a file may have a million
 * items. Ids need not be checked: HDF5 fails on an invalid id. */
#include "hdf5/library.h"

#include <stdio.h>
#include <string.h>

#include "hdf5/guard.h"
#include "hdf5/write.h"

enum {
    ITEM_BYTES = 16, /* least bytes that an item takes in a file */
    MOST_DEPTH = 32,
    MOST_VALUE = 1 << 21, /* bytes of an attribute's value */
    MOST_CHUNK = 1 << 28, /* bytes, unpacked */
    DEFLATE_BEST = 1100   /* upper bound for deflate's compression factor */
};

struct dt__h5_inside {
    hid_t file;
    hsize_t bytes; /* length of the file */
    struct dt_text *table;
    size_t items;
    struct place {
        size_t at;            /* position of the item in the table */
        hid_t set;            /* the array, open for reading; 0: not opened yet */
        size_t chunks, cache; /* number of chunks that contain parts of one row, and their bytes; 0:
                               * CHUNK_CACHE suffices */
    } * places;               /* (items) */
    size_t places_capacity;
};

/* ---- the library ---------------------------------------------------------------------------- */

struct dt__h5_symbols dt__h5;

static const char *const symbols[] = {DT__H5_SYMBOLS(DT__NAME)};
static struct dt__library library = DT__LIBRARY("hdf5", symbols, &dt__h5);

dt_status dt__h5_load(void)
{
    return dt__library_load(&library);
}

void dt__h5_prepare(void)
{
    if (!dt__h5_load()) (void)H5.open();
}

const char *dt__h5_version(char buffer[16])
{
    snprintf(buffer, 16, "%d.%d.%d", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
    return buffer;
}

/* ---- errors --------------------------------------------------------------------------------- */

static herr_t error_keep_description(unsigned depth, const H5E_error2_t *error, void *arg)
{
    (void)depth;
    const char **innermost = arg;
    if (error->desc && *error->desc) *innermost = error->desc;
    return 0;
}

dt_status dt__h5_library_fail(dt_status status, const char *what)
{
    const char *innermost = NULL;
    H5.Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, error_keep_description, &innermost);
    if (innermost)
        dt_fail(status, "%s: HDF5: %s", what, innermost);
    else
        dt_fail(status, "%s", what);
    H5.Eclear2(H5E_DEFAULT);
    return status;
}

/* ---- types ---------------------------------------------------------------------------------- */

/* The types of a number: in memory, and in files of both byte orders. */
struct number_type {
    hid_t native, little, big;
};

#define NUMBER(native, stored)                                                                     \
    H5_ID(T_NATIVE_##native), H5_ID(T_##stored##LE), H5_ID(T_##stored##BE)

static struct number_type number_type(enum dt__h5_type type)
{
    const struct number_type known[] = {[DT__H5_U8] = {NUMBER(UINT8, STD_U8)},
                                        [DT__H5_I8] = {NUMBER(INT8, STD_I8)},
                                        [DT__H5_U16] = {NUMBER(UINT16, STD_U16)},
                                        [DT__H5_I16] = {NUMBER(INT16, STD_I16)},
                                        [DT__H5_U32] = {NUMBER(UINT32, STD_U32)},
                                        [DT__H5_I32] = {NUMBER(INT32, STD_I32)},
                                        [DT__H5_U64] = {NUMBER(UINT64, STD_U64)},
                                        [DT__H5_I64] = {NUMBER(INT64, STD_I64)},
                                        [DT__H5_F16] = {-1, -1, -1}, /* HDF5 has no name for it */
                                        [DT__H5_F32] = {NUMBER(FLOAT, IEEE_F32)},
                                        [DT__H5_F64] = {NUMBER(DOUBLE, IEEE_F64)}};
    return (unsigned)type < DT__H5_TEXT ? known[type] : known[DT__H5_F16];
}

hid_t dt__h5_stored_type(enum dt__h5_type type)
{
    return number_type(type).little;
}

static bool item_type(hid_t type, struct dt__h5_item *item)
{
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;
    if (H5.Tget_class(type) == H5T_ENUM) { /* numpy's bool is an enumeration over a small integer */
        const hid_t base = H5.Tget_super(type);
        const bool good = H5.Tget_class(base) == H5T_INTEGER && item_type(base, item);
        H5.Tclose(base);
        return good;
    }
    /* Half precision, in the form that h5py writes. */
    bool half =
        H5.Tget_class(type) == H5T_FLOAT && H5.Tget_size(type) == 2 &&
        H5.Tget_precision(type) == 16 && H5.Tget_offset(type) == 0 &&
        H5.Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
        sign == 15 && exponent == 10 && exponent_bits == 5 && mantissa == 0 && mantissa_bits == 10;
    item->type = half ? DT__H5_F16 : DT__H5_TEXT;
    for (int i = DT__H5_U8; i < DT__H5_TEXT && !half; i++) {
        struct number_type number = number_type((enum dt__h5_type)i);
        if (H5.Tequal(type, number.little) > 0 || H5.Tequal(type, number.big) > 0)
            item->type = (enum dt__h5_type)i;
    }
    item->size = item->type == DT__H5_TEXT ? 1 : H5.Tget_size(type);
    return item->type != DT__H5_TEXT || H5.Tget_class(type) == H5T_STRING;
}

/* Reads the rank and dimensions of a space, and closes it. Returns false if the elements cannot be
 * counted. */
static bool item_space(hid_t space, struct dt__h5_item *item)
{
    hsize_t dims[DT__H5_MAX_RANK];
    size_t bytes;
    const H5S_class_t class = H5.Sget_simple_extent_type(space);
    item->count = 1;
    item->rank = H5.Sget_simple_extent_ndims(space);
    bool good = item->rank >= 0 && item->rank <= DT__H5_MAX_RANK &&
                class == (item->rank ? H5S_SIMPLE : H5S_SCALAR) &&
                H5.Sget_simple_extent_dims(space, dims, NULL) == item->rank;
    H5.Sclose(space);
    for (int i = 0; good && i < item->rank; i++) {
        item->dims[i] = dims[i];
        good = dt__size_mul(item->count, dims[i], &item->count);
    }
    return good && dt__size_mul(item->count, item->size, &bytes);
}

/* ---- the table ------------------------------------------------------------------------------ */

/* Adds an item to the table. The number of items is limited by the file's size, because with hard
 * links a small file can list any number of items. */
static dt_status table_add(struct dt__h5_inside *inside, struct dt__h5_item item, const char *path,
                           const void *data, size_t length)
{
    if (inside->items >= inside->bytes / ITEM_BYTES)
        return dt_fail(DT_EFORMAT, "holds too many things");
    DT_TRY(dt__grow(&inside->places, &inside->places_capacity, inside->items + 1,
                    sizeof *inside->places, "a table of contents"));
    inside->places[inside->items++] = (struct place){.at = inside->table->length};
    item.length = length;
    DT_TRY(dt__text_append(inside->table, &item, sizeof item));
    DT_TRY(dt__text_append(inside->table, path, strlen(path) + 1));
    return length ? dt__text_append(inside->table, data, length) : DT_OK;
}

static dt_status table_refuse(struct dt__h5_inside *inside, const char *path, const char *why)
{
    struct dt__h5_item item = {.kind = DT__H5_REFUSED, .offset = UINT64_MAX};
    return table_add(inside, item, path, why, strlen(why) + 1);
}

/* ---- texts ---------------------------------------------------------------------------------- */

/* Appends the texts of an attribute or of a data set of rank 1 to `out`, each with a final NUL. The
 * library allocates texts of variable length, and this process never frees them. */
static dt_status texts_read(hid_t object, hid_t type, uint64_t count, size_t most,
                            struct dt_text *out)
{
    bool any_length = H5.Tis_variable_str(type) > 0;
    size_t size = any_length ? sizeof(char *) : H5.Tget_size(type), bytes;
    char *table;
    if (size > most || !dt__size_mul(count, size, &bytes) || bytes > DT__H5_TEXTS_BYTES)
        return dt_fail(DT_EFORMAT, "too much text");
    DT_TRY(dt__alloc(count, size, "texts", &table));
    herr_t got = H5.Iget_type(object) == H5I_ATTR
                     ? H5.Aread(object, type, table)
                     : H5.Dread(object, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, table);
    dt_status status =
        got < 0 ? dt__h5_library_fail(DT_EFORMAT, "texts that cannot be read") : DT_OK;
    for (uint64_t i = 0; i < count && !status; i++) {
        const char *text = table + i * size;
        if (any_length) memcpy(&text, table + i * size, sizeof text);
        size_t length = text ? strnlen(text, any_length ? most : size) : 0;
        if ((any_length && length == most) || out->length + length > DT__H5_TEXTS_BYTES)
            status = dt_fail(DT_EFORMAT, "too much text");
        if (!status && length) status = dt__text_append(out, text, length);
        if (!status) status = dt__text_append(out, "", 1);
    }
    dt_free(table);
    return status;
}

/* ---- attributes ----------------------------------------------------------------------------- */

/* State of a walk over the attributes or links of an object. */
struct visit {
    struct dt__h5_inside *inside;
    const char *path; /* path of the object */
    int depth;
    dt_status status;
};

/* Adds an attribute that is a number or a text; skips other attributes. */
static dt_status attribute_add(const struct visit *visit, const char *name, hid_t attribute)
{
    union {
        uint64_t bits;
        double real;
    } number;
    struct dt_text text = {0};
    struct dt__h5_item item = {.kind = DT__H5_ATTRIBUTE, .offset = UINT64_MAX};
    const hid_t type = H5.Aget_type(attribute);
    dt_status status = DT_OK;
    char *path;
    const bool typed = item_type(type, &item);
    bool useful = item_space(H5.Aget_space(attribute), &item) && typed && item.count == 1 &&
                  item.type != DT__H5_F16;
    item.rank = 0;
    if (useful && item.type == DT__H5_TEXT)
        status = texts_read(attribute, type, 1, MOST_VALUE, &text);
    else if (useful)
        useful = H5.Aread(attribute, number_type(item.type).native, &number) >= 0;
    H5.Tclose(type);
    useful &= status != DT_EFORMAT;
    if (useful && !status) status = dt__format(&path, "%s@%s", visit->path, name);
    if (useful && !status) {
        status = text.data ? table_add(visit->inside, item, path, text.data, text.length)
                           : table_add(visit->inside, item, path, &number, (size_t)item.size);
        dt_free(path);
    }
    dt__text_free(&text);
    return useful ? status : DT_OK;
}

static herr_t attribute_visit(hid_t object, const char *name, const H5A_info_t *info, void *arg)
{
    (void)info;
    struct visit *visit = arg;
    const hid_t attribute = H5.Aopen(object, name, H5P_DEFAULT);
    visit->status = attribute_add(visit, name, attribute);
    H5.Aclose(attribute);
    return visit->status ? -1 : 0;
}

/* ---- arrays --------------------------------------------------------------------------------- */

/* Returns NULL if libhdf5 itself has all filters of the array, else what to complain about. */
static const char *filters_complain(hid_t plist)
{
    enum { LZF = 32000 }; /* its number in HDF5's list of registered filters */
    int count = H5.Pget_nfilters(plist);
    for (int i = 0; i < count; i++) {
        unsigned flags, config;
        size_t values = 0;
        H5Z_filter_t filter =
            H5.Pget_filter2(plist, (unsigned)i, &flags, &values, NULL, 0, NULL, &config);
        if (filter == LZF) return "is packed by lzf, which h5py alone reads: expected gzip";
        if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
            filter != H5Z_FILTER_FLETCHER32)
            return "is packed by a filter that is not known: expected gzip";
    }
    return count < 0 ? "is not stored plainly in the file itself" : NULL;
}

/* Returns NULL if, judging by sizes, the file can hold as much as the dimensions claim, else what
 * to complain about. Stores a contiguous array's position in the item. */
static const char *array_complain(const struct dt__h5_inside *inside, hid_t set, hid_t plist,
                                  bool contiguous, struct dt__h5_item *item)
{
    static const char hollow[] = "is not all in the file";
    const hsize_t size = inside->bytes, stored = H5.Dget_storage_size(set);
    uint64_t bytes = item->count * item->size;
    if (contiguous) {
        haddr_t offset = H5.Dget_offset(set); /* if undefined, it is beyond any file */
        item->offset = offset;
        return stored == bytes && offset <= size && stored <= size - offset ? NULL : hollow;
    }
    hsize_t dims[DT__H5_MAX_RANK];
    size_t chunk = item->size; /* bytes of an unpacked chunk */
    if (H5.Pget_chunk(plist, DT__H5_MAX_RANK, dims) != item->rank) return hollow;
    for (int i = 0; i < item->rank; i++)
        if (!dt__size_mul(chunk, dims[i], &chunk)) return hollow;
    if (chunk > MOST_CHUNK) return "has chunks of more than 256 MiB: expected smaller ones";
    return chunk && stored <= size && bytes / DEFLATE_BEST <= stored ? NULL : hollow;
}

/* CHUNK_CACHE holds a chunk or two of a packed data set, so that neighbouring reads unpack a chunk
 * only once. If the chunks that contain one row are larger in total, each read of a few rows would
 * unpack all of them again. So the cache is then made large enough for them, but at most
 * MOST_CACHE, since each reader has one. Rows of a chunk that is too large for the cache and not
 * packed are read one by one. */
enum { CHUNK_CACHE = 1 << 22, MOST_CACHE = 1 << 26, CACHE_SLOTS = 521, MOST_SLOTS = 1 << 20 };

/* HDF5 first evicts chunks that were read completely, then the least recently used ones. At 1.0 it
 * would never evict the latter and would keep every chunk that was read in part (1.10.8). */
static const double WHOLE_FIRST = 0.75;

static void array_size_cache(hid_t plist, struct dt__h5_item *item, struct place *place)
{
    hsize_t dims[DT__H5_MAX_RANK];
    size_t chunks = 1, chunk = item->size, bytes;
    if (H5.Pget_chunk(plist, DT__H5_MAX_RANK, dims) != item->rank) return;
    for (int i = 0; i < item->rank; i++) {
        chunk *= dims[i]; /* no overflow: at most MOST_CHUNK */
        if (i && !dt__size_mul(chunks, (item->dims[i] - 1) / dims[i] + 1, &chunks)) return;
    }
    if (!dt__size_mul(chunks, chunk, &bytes) || bytes <= CHUNK_CACHE || bytes > MOST_CACHE) return;
    if (chunk > CHUNK_CACHE && !H5.Pget_nfilters(plist)) return;
    place->chunks = chunks < MOST_SLOTS ? chunks : MOST_SLOTS;
    place->cache = item->cache = bytes;
}

static dt_status array_walk(struct dt__h5_inside *inside, hid_t set, const char *path)
{
    struct dt__h5_item item = {.kind = DT__H5_ARRAY, .offset = UINT64_MAX};
    const hid_t plist = H5.Dget_create_plist(set), type = H5.Dget_type(set);
    const H5D_layout_t layout = H5.Pget_layout(plist);
    struct dt_text texts = {0};
    const char *why = NULL;
    struct place place = {0};
    dt_status status = DT_OK;
    if ((layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED) || H5.Pget_external_count(plist) != 0)
        why = "is not stored plainly in the file itself";
    else if (filters_complain(plist))
        why = filters_complain(plist);
    else if (!item_type(type, &item))
        why = "holds neither plain numbers nor texts";
    else if (!item_space(H5.Dget_space(set), &item) || !item.rank)
        why = "has no proper dimensions";
    else if (!item.count)
        why = "is empty";
    else if (item.type == DT__H5_TEXT)
        status = item.rank == 1 ? texts_read(set, type, item.count, DT__H5_TEXT_BYTES, &texts)
                                : DT_EFORMAT;
    else if (!(why = array_complain(inside, set, plist, layout == H5D_CONTIGUOUS, &item)) &&
             H5.Tequal(type, number_type(item.type).native) <= 0)
        item.offset = UINT64_MAX; /* the program has no type for it as stored: the library must
                                   * convert it */
    if (status == DT_EFORMAT) why = "is not a list of names";
    if (!why && layout == H5D_CHUNKED) array_size_cache(plist, &item, &place);
    if (why)
        status = table_refuse(inside, path, why);
    else if (!status)
        status = table_add(inside, item, path, texts.data, texts.length);
    if (!why && !status) {
        place.at = inside->places[inside->items - 1].at;
        inside->places[inside->items - 1] = place;
    }
    H5.Pclose(plist);
    H5.Tclose(type);
    dt__text_free(&texts);
    return status;
}

/* ---- objects -------------------------------------------------------------------------------- */

static dt_status object_walk(struct dt__h5_inside *inside, hid_t object, const char *path,
                             int depth);

/* Adds the object of a hard link. Skips soft and external links, which lead elsewhere. */
static herr_t link_visit(hid_t group, const char *name, const H5L_info_t *info, void *arg)
{
    struct visit *visit = arg;
    char *path;
    if (info->type != H5L_TYPE_HARD) return 0;
    visit->status = dt__format(&path, "%s/%s", strcmp(visit->path, "/") ? visit->path : "", name);
    if (visit->status) return -1;
    const hid_t object = H5.Oopen(group, name, H5P_DEFAULT);
    visit->status = object < 0 ? table_refuse(visit->inside, path, "cannot be opened")
                               : object_walk(visit->inside, object, path, visit->depth + 1);
    H5.Oclose(object);
    H5.Eclear2(H5E_DEFAULT);
    dt_free(path);
    return visit->status ? -1 : 0;
}

/* Adds an object, its attributes and everything below it. */
static dt_status object_walk(struct dt__h5_inside *inside, hid_t object, const char *path,
                             int depth)
{
    const struct dt__h5_item group = {.kind = DT__H5_GROUP, .offset = UINT64_MAX};
    struct visit visit = {inside, path, depth, DT_OK};
    const H5I_type_t type = H5.Iget_type(object);
    if (type != H5I_GROUP && type != H5I_DATASET)
        return table_refuse(inside, path, "is neither a group nor a data set");
    if (depth > MOST_DEPTH) return table_refuse(inside, path, "lies too deep");
    DT_TRY(type == H5I_GROUP ? table_add(inside, group, path, NULL, 0)
                             : array_walk(inside, object, path));
    if (H5.Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, attribute_visit, &visit) < 0)
        return visit.status ? visit.status
                            : dt__h5_library_fail(DT_EFORMAT, "attributes that cannot be read");
    if (type == H5I_GROUP &&
        H5.Literate(object, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, link_visit, &visit) < 0)
        return visit.status ? visit.status
                            : dt__h5_library_fail(DT_EFORMAT, "a group that cannot be read");
    return DT_OK;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Turns file locking off: files are only read, and some file systems have no locks. */
static void plist_leave_unlocked(hid_t plist)
{
#define LEAVE_UNLOCKED(prefix, name) H5.name(plist, false, true);
    (void)plist; /* an older library obeys HDF5_USE_FILE_LOCKING, which the fork server sets */
    DT__H5_LOCKING(LEAVE_UNLOCKED)
}

dt_status dt__h5_inside_open(const char *path, struct dt_text *table, struct dt__h5_inside **out)
{
    static struct dt__h5_inside inside; /* a process has only one */
    DT_TRY(dt__h5_load());
    H5.Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5.PLset_loading_state(0);
    const hid_t plist = H5.Pcreate(H5_CLASS(FILE_ACCESS));
    H5.Pset_cache(plist, 0, CACHE_SLOTS, CHUNK_CACHE, WHOLE_FIRST);
    plist_leave_unlocked(plist);
    inside = (struct dt__h5_inside){.file = H5.Fopen(path, H5F_ACC_RDONLY, plist), .table = table};
    if (inside.file < 0) /* fail before another call replaces the library's reason */
        return dt__h5_library_fail(DT_EFORMAT, "cannot be opened as HDF5");
    const hid_t root = H5.Gopen2(inside.file, "/", H5P_DEFAULT);
    if (root < 0 || H5.Fget_filesize(inside.file, &inside.bytes) < 0)
        return dt__h5_library_fail(DT_EFORMAT, "cannot be opened as HDF5");
    *out = &inside;
    return object_walk(&inside, root, "/", 0);
}

static hid_t place_open(const struct dt__h5_inside *inside, const struct place *place)
{
    const char *path = inside->table->data + place->at + sizeof(struct dt__h5_item);
    const hid_t plist = H5.Pcreate(H5_CLASS(DATASET_ACCESS));
    if (place->cache) /* one slot for each chunk, so that no chunk evicts another */
        H5.Pset_chunk_cache(plist, CACHE_SLOTS + place->chunks, place->cache, WHOLE_FIRST);
    const hid_t set = H5.Dopen2(inside->file, path, plist);
    H5.Pclose(plist);
    return set;
}

dt_status dt__h5_inside_read(struct dt__h5_inside *inside, const struct dt__h5_request *request,
                             struct dt_text *out)
{
    const hsize_t start[DT__H5_MAX_RANK] = {request->first};
    hsize_t extent[DT__H5_MAX_RANK];
    const enum dt__h5_type type = (enum dt__h5_type)request->type;
    struct place *place = &inside->places[request->item];
    if (!place->set) place->set = place_open(inside, place);
    const hid_t set = place->set, space = H5.Dget_space(set);
    const int rank = H5.Sget_simple_extent_ndims(space);
    size_t bytes = dt__h5_type_size(type);
    bool good = rank >= 1 && rank <= DT__H5_MAX_RANK &&
                H5.Sget_simple_extent_dims(space, extent, NULL) == rank;
    extent[0] = request->rows;
    for (int i = 0; i < rank && good; i++)
        good = dt__size_mul(bytes, extent[i], &bytes);
    if (!good) return dt_fail(DT_EBUG, "rows that are not there");
    DT_TRY(dt__grow(&out->data, &out->capacity, bytes, 1, "rows"));
    const hid_t memory = H5.Screate_simple(rank, extent, NULL);
    good = H5.Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL) >= 0 &&
           H5.Dread(set, number_type(type).native, memory, space, H5P_DEFAULT, out->data) >= 0;
    const dt_status status = good ? DT_OK : dt__h5_library_fail(DT_EIO, "rows cannot be read");
    H5.Sclose(memory);
    H5.Sclose(space);
    out->length = bytes;
    return status;
}
