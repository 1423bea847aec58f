/* Data, from files to batches. The source files, from the lowest layer up:
 *
 *   row_keys.c, row_split.c
 *                        which rows train, and which are held out
 *   typed.c, source.c    the surveyed source, and which rows it has
 *   learned.c            what the readers find in files
 *   parser.c, text_rows.c
 *                        the pass over a text file, and the typed rows that it makes
 *   file_columns.c       matching the columns of several files
 *   csv.c (csv_header.c: its first rows), json_lines.c, libsvm.c, idx.c, hdf5.c, arrays.c
 *                        the formats; formats.c: their table
 *   cursor.c, batch.c    reading rows of all formats, and batches
 *   statistics.c, targets.c, shard_set.c, survey.c
 *                        the survey: what the files hold, once, at the bank
 *   order.c              the assignment of samples to replicas and steps
 *   loader.c             a worker's rows, step by step; augment.c: changes to pictures
 *   row_stream.c         rows to predict; json_rows.c: rows of JSON
 *   shard.c, summary.c   what `dtrain shard` and `dtrain inspect` do
 *
 * This file: a surveyed source, its rows, and the source as bytes. Only ranks of one job exchange
 * these bytes, so numbers have their native form; lengths are checked nevertheless. */
#include "data/source.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "table/schema.h"
#include "text/input.h"

void dt__source_destroy(struct dt_source *source)
{
    if (!source) return;
    for (size_t i = 0; i < source->nfiles; i++) {
        dt_free(source->files[i].path);
        dt_free(source->files[i].labels);
        dt_free(source->files[i].marks);
        dt_free(source->files[i].x_name);
        dt_free(source->files[i].y_name);
    }
    dt_free(source->files);
    dt__split_free(&source->split);
    for (size_t f = 0; f < source->folds; f++)
        dt__split_free(&source->fold[f]);
    dt_free(source->fold);
    dt__row_keys_free(&source->keys);
    dt_free(source->class_weight);
    dt__classes_free(&source->classes);
    dt__columns_free(&source->columns);
    dt_free(source->label_class);
    dt__typed_close(&source->typed);
    dt__schema_free(&source->schema);
    dt_free(source);
}

size_t dt__find_last(const uint64_t *first, size_t count, size_t stride, uint64_t value)
{
    size_t low = 0, high = count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (*(const uint64_t *)(const void *)((const char *)first + middle * stride) <= value)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint64_t dt__source_unknown(const struct dt_source *source)
{
    return source->unknown;
}

bool dt__source_weighs(const struct dt_source *source)
{
    return source->layout.weights;
}

uint64_t dt__source_rows(const struct dt_source *source)
{
    return source->rows;
}

uint64_t dt__source_most_entries(const struct dt_source *source, uint64_t rows)
{
    const uint64_t most = source->most_entries * rows;
    return most < source->entries ? most : source->entries;
}

void dt__source_forget_quantiles(struct dt_source *source)
{
    if (source) dt__schema_forget_quantiles(&source->schema);
}

const struct dt_schema *dt__source_schema(const struct dt_source *source)
{
    return &source->schema;
}

uint64_t dt__source_entries(const struct dt_source *source, uint64_t rows)
{
    if (rows >= source->raw_rows) return source->entries;
    return (uint64_t)((double)source->entries / (double)source->raw_rows * (double)rows * 1.05);
}

uint64_t dt__source_row_bytes(const struct dt_source *source)
{
    const struct dt__row_layout *layout = &source->layout;
    uint64_t entries = source->raw_rows ? source->entries / source->raw_rows + 1 : 0;
    if (!dt__row_layout_is_sparse(layout)) entries = 0;
    return dt__row_layout_row(layout) + entries * dt__row_layout_entry(layout) +
           (uint64_t)source->schema.encoded * sizeof(float);
}

uint64_t dt__source_raw(const struct dt_source *source, uint64_t row)
{
    return dt__split_select(&source->split, source->side, row);
}

uint64_t dt__source_before(const struct dt_source *source, uint64_t raw)
{
    return dt__split_before(&source->split, source->side, raw);
}

void dt__source_file_rows(const struct dt_source *source, size_t file, uint64_t *begin,
                          uint64_t *count)
{
    const struct dt__file *f = &source->files[file];
    *begin = dt__source_before(source, f->raw);
    *count = dt__source_before(source, f->raw + f->rows) - *begin;
}

static dt_status path_measure(const char *path, uint64_t *out)
{
    struct stat info;
    if (stat(path, &info)) return dt_fail(DT_EIO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) return dt_fail(DT_EIO, "%s: not a plain file", path);
    *out += (uint64_t)info.st_size;
    return DT_OK;
}

dt_status dt__file_measure(const struct dt__file *file, uint64_t *out)
{
    uint64_t bytes = 0;
    *out = 0;
    if (file->format == DT__FORMAT_MEMORY) return DT_OK;
    if (!dt__path_is_pipe(file->path)) DT_TRY(path_measure(file->path, &bytes));
    if (file->labels) DT_TRY(path_measure(file->labels, &bytes));
    *out = bytes;
    return DT_OK;
}

static uint32_t text_crc(uint32_t crc, const char *text)
{
    return text ? dt__crc32c(crc, text, strlen(text) + 1) : crc;
}

static uint32_t schema_crc(const struct dt_schema *schema)
{
    int sizes[] = {schema->task, schema->features, schema->classes, schema->targets};
    uint32_t crc = dt__crc32c(0, sizes, sizeof sizes);
    size_t floats = (size_t)schema->features * sizeof(float);
    crc = dt__crc32c(crc, &schema->scale, sizeof schema->scale);
    if (schema->clip > 0) crc = dt__crc32c(crc, &schema->clip, sizeof schema->clip);
    if (schema->mean) crc = dt__crc32c(crc, schema->mean, floats);
    if (schema->inv_std) crc = dt__crc32c(crc, schema->inv_std, floats);
    if (schema->quantile)
        crc = dt__crc32c(crc, schema->quantile, (size_t)schema->quantiles * sizeof(float));
    floats = (size_t)schema->targets * sizeof(float);
    if (schema->target_mean) crc = dt__crc32c(crc, schema->target_mean, floats);
    if (schema->target_std) crc = dt__crc32c(crc, schema->target_std, floats);
    if (schema->target_least) crc = dt__crc32c(crc, schema->target_least, floats);
    if (schema->target_greatest) crc = dt__crc32c(crc, schema->target_greatest, floats);
    for (int i = 0; schema->feature_names && i < schema->features; i++)
        crc = text_crc(crc, schema->feature_names[i]);
    for (int i = 0; schema->label_names && i < schema->classes; i++)
        crc = text_crc(crc, schema->label_names[i]);
    for (int c = 0; schema->columns && c < schema->ncolumns; c++) {
        const struct dt_column *column = &schema->columns[c];
        crc = text_crc(crc, column->name);
        crc = dt__crc32c(crc, &column->fill, sizeof column->fill);
        for (int i = 0; i < column->ncategories; i++)
            crc = text_crc(crc, column->categories[i]);
    }
    return crc;
}

uint32_t dt__source_crc(const struct dt_source *source)
{
    uint32_t crc = schema_crc(&source->schema);
    crc = dt__split_crc(&source->split, crc);
    for (size_t i = 0; i < source->nfiles; i++) {
        const struct dt__file *file = &source->files[i];
        const char *slash = strrchr(file->path, '/');
        crc = text_crc(crc, slash ? slash + 1 : file->path);
        crc = dt__crc32c(crc, &file->rows, sizeof file->rows);
    }
    return crc;
}

/* Adds to a CRC-32C BLOCKS blocks of a file, which are spread evenly from its first byte to its
 * last. */
static dt_status file_content(const char *path, uint32_t *crc)
{
    enum { BLOCKS = 16, BYTES = 64 << 10 };
    unsigned char *block;
    uint64_t size;
    int fd;
    DT_TRY(dt__file_open(path, &fd, &size));
    dt_status status = dt__alloc(BYTES, 1, "a block of data", &block);
    for (uint64_t i = 0; i < BLOCKS && !status; i++) {
        const uint64_t last = size > BYTES ? size - BYTES : 0, at = last / (BLOCKS - 1) * i;
        const size_t n = size - at < BYTES ? (size_t)(size - at) : BYTES;
        status = dt__fd_read(fd, path, block, n, at);
        if (!status) *crc = dt__crc32c(*crc, block, n);
    }
    dt_free(block);
    close(fd);
    return status;
}

dt_status dt__source_content(const struct dt_source *source, uint32_t *out)
{
    *out = source->text_crc;
    for (size_t i = 0; i < source->nfiles; i++) {
        const struct dt__file *file = &source->files[i];
        if (file->format == DT__FORMAT_MEMORY || file->nmarks) continue;
        DT_TRY(file_content(file->path, out));
        if (file->labels) DT_TRY(file_content(file->labels, out));
    }
    return DT_OK;
}

/* ==== the source as bytes ===================================================================== */

/* One list of members serves both directions: an archive writes the members, or reads them back. */
struct archive {
    bool reading;
    struct dt_text out;
    const unsigned char *in;
    size_t left;
};

static dt_status archive_bytes(struct archive *archive, void *bytes, size_t length)
{
    if (!archive->reading) return dt__text_append(&archive->out, bytes, length);
    if (length > archive->left) return dt_fail(DT_EBUG, "a packed survey is too short");
    memcpy(bytes, archive->in, length);
    archive->in += length;
    archive->left -= length;
    return DT_OK;
}

#define ARCHIVE(member) archive_bytes(archive, &(member), sizeof(member))

/* Archives an array of `count` items of `size` bytes. `pointer` is the address of the pointer to
 * the array; that pointer is NULL if there is no array. */
static dt_status archive_array(struct archive *archive, void *pointer, size_t count, size_t size)
{
    void *array;
    memcpy(&array, pointer, sizeof array);
    bool there = array != NULL;
    DT_TRY(ARCHIVE(there));
    if (!there) return DT_OK;
    if (archive->reading) {
        if (count > archive->left) return dt_fail(DT_EBUG, "a packed survey is too short");
        DT_TRY(dt__alloc(count, size, "survey", &array));
        memcpy(pointer, &array, sizeof array);
    }
    return archive_bytes(archive, array, count * size);
}

static dt_status archive_text(struct archive *archive, char **text)
{
    size_t length = *text ? strlen(*text) + 1 : 0;
    DT_TRY(ARCHIVE(length));
    return length ? archive_array(archive, text, length, 1) : DT_OK;
}

static dt_status archive_member(void *arg, enum dt__member kind, void *member, size_t count)
{
    struct archive *archive = arg;
    struct dt_column **columns = member;
    char ***names = member;
    if (kind == DT__MEMBER_TEXT) return archive_text(archive, member);
    if (kind == DT__MEMBER_FLOATS) return archive_array(archive, member, count, sizeof(float));
    if (kind == DT__MEMBER_NUMBERS) return archive_array(archive, member, count, sizeof(int64_t));
    if (kind == DT__MEMBER_COLUMNS) {
        DT_TRY(archive_array(archive, member, count, sizeof **columns));
        for (size_t c = 0; archive->reading && *columns && c < count; c++) {
            (*columns)[c].name = NULL; /* the bytes had the sender's pointer */
            (*columns)[c].categories = NULL;
        }
        return DT_OK;
    }
    bool there = *names != NULL;
    DT_TRY(ARCHIVE(there));
    if (there && archive->reading) DT_TRY(dt__alloc(count, sizeof **names, "names", names));
    for (size_t i = 0; there && i < count; i++)
        DT_TRY(archive_text(archive, &(*names)[i]));
    return DT_OK;
}

/* Archives the members of a struct that come before `member`. They hold no pointers. */
#define ARCHIVE_UNTIL(object, type, member)                                                        \
    archive_bytes(archive, object, offsetof(struct type, member))

static dt_status archive_schema(struct archive *archive, struct dt_schema *schema)
{
    DT_TRY(ARCHIVE_UNTIL(schema, dt_schema, mean));
    return dt__schema_visit(schema, archive_member, archive);
}

dt_status dt__schema_copy(const struct dt_schema *schema, struct dt_schema *out)
{
    struct archive to = {0}, from = {.reading = true};
    struct dt_schema borrowed = *schema, copy = {0};
    dt_status status = archive_schema(&to, &borrowed);
    from.in = (const unsigned char *)to.out.data;
    from.left = to.out.length;
    if (!status) status = archive_schema(&from, &copy);
    if (status)
        dt__schema_free(&copy);
    else
        *out = copy;
    dt__text_free(&to.out);
    return status;
}

static dt_status archive_file(struct archive *archive, struct dt__file *file)
{
    DT_TRY(ARCHIVE_UNTIL(file, dt__file, marks));
    DT_TRY(archive_array(archive, &file->marks, file->nmarks, sizeof *file->marks));
    DT_TRY(archive_text(archive, &file->path));
    DT_TRY(archive_text(archive, &file->labels));
    DT_TRY(archive_text(archive, &file->x_name));
    return archive_text(archive, &file->y_name);
}

static dt_status archive_split(struct archive *archive, struct dt__split *split)
{
    bool splits = split->before;
    DT_TRY(ARCHIVE_UNTIL(split, dt__split, bits));
    DT_TRY(ARCHIVE(splits));
    if (!splits) return DT_OK;
    if (archive->reading) DT_TRY(dt__split_alloc(split, split->rows));
    for (int b = 0; b < 2; b++)
        DT_TRY(archive_bytes(archive, split->bits[b], dt__split_bytes(split)));
    if (archive->reading) dt__split_count(split);
    return DT_OK;
}

static dt_status archive_source(struct archive *archive, struct dt_source *source)
{
    DT_TRY(ARCHIVE_UNTIL(source, dt_source, split));
    DT_TRY(archive_split(archive, &source->split));
    size_t folds = source->folds;
    DT_TRY(ARCHIVE(folds));
    if (archive->reading) DT_TRY(dt__alloc(folds, sizeof *source->fold, "folds", &source->fold));
    source->folds = folds;
    for (size_t f = 0; f < folds; f++)
        DT_TRY(archive_split(archive, &source->fold[f]));
    DT_TRY(archive_schema(archive, &source->schema));
    const size_t classes = (size_t)source->schema.classes;
    if (archive->reading) {
        DT_TRY(dt__classes_init(&source->classes, &source->schema, source->numbered));
        /* CSV needs columns even where the schema has none */
        const bool whole = source->schema.dense == source->schema.features;
        DT_TRY(whole ? dt__columns_of_schema(&source->columns, &source->schema)
                     : dt__columns_of_json(&source->columns, &source->schema));
    }
    DT_TRY(archive_array(archive, &source->class_weight, classes, sizeof *source->class_weight));
    DT_TRY(archive_array(archive, &source->label_class, source->label_codes,
                         sizeof *source->label_class));
    /* Files of plain numbers have no columns, even if the schema has some. */
    size_t mapped = source->schema.columns ? source->columns.count : 0;
    DT_TRY(ARCHIVE(mapped));
    for (size_t c = 0; c < mapped && c < source->columns.count; c++) {
        struct dt__column *column = &source->columns.items[c];
        DT_TRY(ARCHIVE(column->ncodes));
        DT_TRY(archive_array(archive, &column->map, column->ncodes, sizeof *column->map));
    }
    struct dt_place place = dt__source_place(source);
    DT_TRY(ARCHIVE(place));
    if (archive->reading && place.fd >= 0 && !dt__source_attach(source, &place))
        source->typed.bytes = place.bytes;
    size_t nfiles = source->nfiles;
    DT_TRY(ARCHIVE(nfiles));
    if (archive->reading) DT_TRY(dt__alloc(nfiles, sizeof *source->files, "files", &source->files));
    source->nfiles = nfiles; /* set only now, when `files` has this many items */
    for (size_t i = 0; i < nfiles; i++)
        DT_TRY(archive_file(archive, &source->files[i]));
    return DT_OK;
}

dt_status dt__source_pack(const struct dt_source *source, void *out_bytes, size_t *out_length)
{
    struct archive archive = {0};
    struct dt_source copy = *source; /* its arrays are only read */
    dt_status status = archive_source(&archive, &copy);
    if (status) {
        dt__text_free(&archive.out);
        return status;
    }
    memcpy(out_bytes, &archive.out.data, sizeof archive.out.data);
    *out_length = archive.out.length;
    return DT_OK;
}

dt_status dt__source_unpack(const void *bytes, size_t length, struct dt_source **out)
{
    struct archive archive = {.reading = true, .in = bytes, .left = length};
    struct dt_source *source;
    DT_TRY(dt__alloc(1, sizeof *source, "survey", &source));
    source->typed.fd = -1;
    dt_status status = archive_source(&archive, source);
    if (status)
        dt__source_destroy(source);
    else
        *out = source;
    return status;
}

dt_status dt__source_copy(const struct dt_source *source, struct dt_source **out)
{
    void *bytes;
    size_t length;
    *out = NULL;
    if (!source) return DT_OK;
    DT_TRY(dt__source_pack(source, &bytes, &length));
    const dt_status status = dt__source_unpack(bytes, length, out);
    dt_free(bytes);
    if (!status) (*out)->borrowed = source->borrowed;
    return status;
}

dt_status dt__source_side(const struct dt_source *train, enum dt__side side, struct dt_source **out)
{
    *out = NULL;
    if (!train->split.count[side]) return DT_OK;
    DT_TRY(dt__source_copy(train, out));
    (*out)->side = side;
    (*out)->rows = train->split.count[side];
    return DT_OK;
}

dt_status dt__source_fold(const struct dt_source *source, int fold, enum dt__side side,
                          struct dt_source **out)
{
    struct dt_source borrowed = *source; /* its arrays are only read */
    borrowed.split = source->fold[fold];
    borrowed.fold = NULL;
    borrowed.folds = 0;
    return dt__source_side(&borrowed, side, out);
}

dt_status dt__source_sample(const struct dt_source *train, uint64_t seed, uint64_t rows,
                            struct dt_source **out)
{
    const uint64_t count = rows < train->rows ? rows : train->rows;
    struct dt__split chosen = {0};
    struct dt_perm perm;
    void *bytes = NULL;
    size_t length;
    dt_status status;
    DT_GUARD(dt__split_alloc(&chosen, train->raw_rows));
    DT_GUARD(dt__source_pack(train, &bytes, &length));
    DT_GUARD(dt__source_unpack(bytes, length, out));
    dt__perm_init(&perm, train->rows, dt__rng_make(seed, DT_STREAM_SAMPLE, 0, 0));
    for (uint64_t i = 0; i < count; i++)
        dt__split_set(&chosen, dt__source_raw(train, dt__perm_at(&perm, i)), DT__HELD_OUT);
    dt__split_count(&chosen);
    dt__split_free(&(*out)->split);
    (*out)->split = chosen;
    (*out)->side = DT__HELD_OUT;
    (*out)->rows = count;
    chosen = (struct dt__split){0};
done:
    dt__split_free(&chosen);
    dt_free(bytes);
    return status;
}

dt_status dt__source_take_rows(struct dt_source *source, const struct dt_source *like)
{
    if (source->raw_rows != like->raw_rows)
        return dt_fail(DT_EMISMATCH, "its files do not have the same rows");
    dt__split_free(&source->split);
    DT_TRY(dt__split_alloc(&source->split, like->raw_rows));
    for (int b = 0; b < 2; b++)
        memcpy(source->split.bits[b], like->split.bits[b], dt__split_bytes(&like->split));
    dt__split_count(&source->split);
    source->side = like->side;
    source->rows = like->rows;
    return DT_OK;
}
