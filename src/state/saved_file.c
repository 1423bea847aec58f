/* Checkpoints and models on disk: the user block, and the records as HDF5. */
#include "state/saved_file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/internal.h"
#include "base/limits.h"
#include "hdf5/write.h"
#include "model/encoding.h"
#include "table/columns_file.h"

_Static_assert(DT__VERIFY_BYTES >= (int)DT__USER_BLOCK, "the user block is read whole");

enum { MAX_REPLICAS = 65536, NAME_SIZE = 24 };

/* ---- the user block ------------------------------------------------------------------------- */

struct header {
    bool whole;     /* true: a checkpoint; false: a model */
    uint32_t crc;   /* CRC-32C of everything after the user block */
    uint64_t bytes; /* number of bytes after the user block */
};

static void header_print(const struct header *header, unsigned char block[DT__USER_BLOCK])
{
    memset(block, 0, DT__USER_BLOCK);
    snprintf((char *)block, DT__USER_BLOCK, "dtrain %s %d crc32c=%08" PRIx32 " bytes=%" PRIu64 "\n",
             header->whole ? "checkpoint" : "model", DT__FORMAT_VERSION, header->crc,
             header->bytes);
}

static dt_status header_parse(const char *path, const unsigned char block[DT__USER_BLOCK],
                              struct header *out)
{
    char text[DT__USER_BLOCK + 1] = {0}, word[16] = "";
    unsigned char again[DT__USER_BLOCK];
    unsigned version = 0;
    memcpy(text, block, DT__USER_BLOCK);
    int found = sscanf(text, "dtrain %15[a-z] %9u crc32c=%8" SCNx32 " bytes=%18" SCNu64, word,
                       &version, &out->crc, &out->bytes);
    out->whole = !strcmp(word, "checkpoint");
    if (found < 2 || (!out->whole && strcmp(word, "model")))
        return dt_fail(DT_EFORMAT, "%s: not a dtrain checkpoint or model", path);
    if (version > DT__FORMAT_VERSION)
        return dt_fail(DT_EFORMAT, "%s: written by a newer dtrain (format %u; this one reads %d)",
                       path, version, DT__FORMAT_VERSION);
    header_print(out, again);
    if (found < 4 || memcmp(block, again, DT__USER_BLOCK))
        return dt_fail(DT_EFORMAT, "%s: damaged: its first %d bytes are not as written", path,
                       DT__USER_BLOCK);
    return DT_OK;
}

/* Checks the size and checksum of a file against its user block; a dt_file_verify_fn. */
static dt_status file_verify(const char *path, void *out_header)
{
    struct header *header = out_header;
    unsigned char *block = NULL;
    uint32_t crc = 0;
    uint64_t size = 0;
    int fd = -1;
    dt_status status;
    DT_TRY(dt__file_open(path, &fd, &size));
    if (size < DT__USER_BLOCK)
        DT_GUARD(dt_fail(DT_EFORMAT, "%s: only %" PRIu64 " bytes long", path, size));
    DT_GUARD(dt__alloc(DT__VERIFY_BYTES, 1, "verifying a checkpoint", &block));
    DT_GUARD(dt__fd_read(fd, path, block, DT__USER_BLOCK, 0));
    DT_GUARD(header_parse(path, block, header));
    if (size - DT__USER_BLOCK != header->bytes)
        DT_GUARD(dt_fail(DT_EFORMAT, "%s: damaged: %" PRIu64 " bytes long, should be %" PRIu64,
                         path, size, header->bytes + DT__USER_BLOCK));
    for (uint64_t at = DT__USER_BLOCK, part; at < size; at += part) {
        part = size - at < DT__VERIFY_BYTES ? size - at : DT__VERIFY_BYTES;
        DT_GUARD(dt__fd_read(fd, path, block, (size_t)part, at));
        crc = dt__crc32c(crc, block, (size_t)part);
    }
    if (crc != header->crc)
        status = dt_fail(DT_EFORMAT, "%s: damaged: checksum %08" PRIx32 ", should be %08" PRIx32,
                         path, crc, header->crc);
done:
    dt_free(block);
    close(fd);
    return status;
}

/* ---- tensors -------------------------------------------------------------------------------- */

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "shapes of tensors are dimensions in files");

static bool is_left_out(const struct dt_tensor *tensor, const struct dt__vector *vector)
{
    return vector->trained && tensor->role == DT_TENSOR_STATE;
}

/* Returns true if all values are +0. -0 does not count: what is read back must have the checksum of
 * what was written. */
static bool row_is_zero(const float *row, size_t width)
{
    for (size_t i = 0; i < width; i++)
        if (row[i] != 0 || signbit(row[i])) return false;
    return true;
}

/* Adds an array, or an attribute if `rank` is 0. */
static void put_array(struct dt__h5_layout *layout, const char *path, enum dt__h5_type type,
                      int rank, const uint64_t *dims, const void *data)
{
    struct dt__h5_item item = {.path = path, .type = type, .rank = rank, .data = data};
    for (int i = 0; i < rank; i++)
        item.dims[i] = dims[i];
    dt__h5_put(layout, &item, NULL);
}

/* Stores a row-sparse tensor by its nonzero rows, if that at least halves its size: NAME_rows has
 * their ascending numbers (u32), NAME_values the rows (f32). Returns false, without storing
 * anything, if too many rows are nonzero. Unless `sparse` is true, more than one nonzero row is too
 * many. */
static bool put_rows(struct dt__h5_layout *layout, const char *path, const struct dt_tensor *tensor,
                     const float *values, bool sparse)
{
    const size_t rows = tensor->shape[0], width = tensor->count / rows;
    const size_t half = rows / 2 * width / (width + 1), most = sparse || !half ? half : 1;
    char name[DT__H5_PATH + sizeof "_values"];
    uint64_t dims[DT__H5_MAX_RANK];
    size_t count = 0, at = 0;
    for (size_t r = 0; r < rows && count <= most; r++)
        count += !row_is_zero(values + r * width, width);
    if (count == 0) count = 1; /* a file cannot hold an empty array */
    if (count > most) return false;
    uint32_t *row = dt__h5_layout_alloc(layout, count, sizeof *row);
    float *value = dt__h5_layout_alloc(layout, count * width, sizeof *value);
    for (size_t r = 0; value && r < rows; r++) {
        if (row_is_zero(values + r * width, width)) continue;
        row[at] = (uint32_t)r;
        memcpy(value + at++ * width, values + r * width, width * sizeof *value);
    }
    memcpy(dims, tensor->shape, sizeof dims);
    dims[0] = count;
    snprintf(name, sizeof name, "%s_rows", path);
    put_array(layout, name, DT__H5_U32, 1, dims, row);
    snprintf(name, sizeof name, "%s_values", path);
    put_array(layout, name, DT__H5_F32, tensor->rank, dims, value);
    return true;
}

/* Stores a vector, tensor by tensor. With `sparse`, a row-sparse tensor is stored by its nonzero
 * rows if that halves it, as after training with train.l1 or with more hash buckets than
 * categories. A row-sparse tensor of an optimizer's state is stored in this way only if it is all
 * zeros, as are the rounding errors of touched rows. */
static void put_vector(struct dt__h5_layout *layout, const struct dt__vector *vector,
                       const struct dt_model *model, bool sparse)
{
    char path[DT__H5_PATH];
    for (size_t i = 0; i < model->tensors; i++) {
        const struct dt_tensor *tensor = &model->tensor[i];
        const float *values = *vector->at + tensor->offset;
        if (is_left_out(tensor, vector)) continue;
        snprintf(path, sizeof path, "%s/%s", vector->path, tensor->name);
        const bool by_rows = tensor->row_sparse && (sparse || vector->trained);
        if (!by_rows || !put_rows(layout, path, tensor, values, sparse))
            put_array(layout, path, DT__H5_F32, tensor->rank, tensor->shape, values);
    }
}

/* Finds an array and checks that it has this type and shape. */
static dt_status find_array(const struct dt__h5_file *file, const char *path, enum dt__h5_type type,
                            int rank, const uint64_t *dims, const struct dt__h5_item **out)
{
    DT_TRY(dt__h5_array(file, path, out));
    if ((*out)->type != type)
        return dt_fail(DT_EFORMAT, "%s has not the type that it should have", path);
    if ((*out)->rank != rank || memcmp((*out)->dims, dims, (size_t)rank * sizeof *dims))
        return dt_fail(DT_EFORMAT, "%s has not the shape that it should have", path);
    return DT_OK;
}

/* Reads the nonzero rows of a tensor into `out`, which is zeroed. */
static dt_status load_rows(struct dt__h5_file *file, const struct dt_tensor *tensor,
                           const struct dt__h5_item *values, const struct dt__h5_item *rows,
                           float *out)
{
    const size_t width = tensor->count / tensor->shape[0];
    uint32_t *row = NULL;
    float *value = NULL;
    dt_status status;
    DT_GUARD(dt__alloc(rows->count, sizeof *row, rows->path, &row));
    DT_GUARD(dt__alloc(rows->count * width, sizeof *value, values->path, &value));
    DT_GUARD(dt__h5_read(file, rows, 0, rows->count, DT__H5_U32, row));
    DT_GUARD(dt__h5_read(file, values, 0, rows->count, DT__H5_F32, value));
    for (uint64_t i = 0; i < rows->count; i++) {
        if (row[i] >= tensor->shape[0] || (i > 0 && row[i] <= row[i - 1]))
            DT_GUARD(dt_fail(DT_EFORMAT, "%s: numbers of rows do not rise, or are too large",
                             rows->path));
        memcpy(out + row[i] * width, value + i * width, width * sizeof *out);
    }
done:
    dt_free(value);
    dt_free(row);
    return status;
}

/* Reads a tensor, stored whole or by its nonzero rows. If `out` is NULL, only checks that the
 * tensor is in the file with the right type and shape. */
static dt_status load_tensor(struct dt__h5_file *file, const char *group,
                             const struct dt_tensor *tensor, float *out)
{
    char path[DT__H5_PATH];
    uint64_t dims[DT__H5_MAX_RANK];
    const struct dt__h5_item *values, *rows;
    memcpy(dims, tensor->shape, sizeof dims);
    snprintf(path, sizeof path, "%s/%s_rows", group, tensor->name);
    rows = tensor->row_sparse ? dt__h5_find(file, DT__H5_ARRAY, path) : NULL;
    if (rows) {
        dims[0] = rows->count;
        DT_TRY(find_array(file, path, DT__H5_U32, 1, dims, &rows));
        if (dims[0] > tensor->shape[0]) return dt_fail(DT_EFORMAT, "%s: too many rows", path);
    }
    snprintf(path, sizeof path, "%s/%s%s", group, tensor->name, rows ? "_values" : "");
    DT_TRY(find_array(file, path, DT__H5_F32, tensor->rank, dims, &values));
    if (!out) return DT_OK;
    return rows ? load_rows(file, tensor, values, rows, out)
                : dt__h5_read(file, values, 0, dims[0], DT__H5_F32, out);
}

/* Reads a vector into new memory, which is allocated only after all tensors have been found.
 * Tensors that the file does not store are 0. */
static dt_status load_vector(struct dt__h5_file *file, const struct dt__vector *vector,
                             const struct dt_model *model, const char *near_path)
{
    for (int reads = 0; reads < 2; reads++) {
        if (reads)
            DT_TRY(dt__alloc_backed(near_path, model->params, sizeof **vector->at, vector->path,
                                    vector->at));
        for (size_t i = 0; i < model->tensors; i++) {
            const struct dt_tensor *tensor = &model->tensor[i];
            if (!is_left_out(tensor, vector))
                DT_TRY(load_tensor(file, vector->path, tensor,
                                   reads ? *vector->at + tensor->offset : NULL));
        }
    }
    return DT_OK;
}

/* ---- records -------------------------------------------------------------------------------- */

static void put_record(struct dt__h5_layout *layout, const struct dt__record *record,
                       const struct dt_checkpoint *from)
{
    const void *member = (const char *)from + record->member;
    const uint64_t count = record->count ? (uint64_t)dt__record_int(from, record->count) : 0;
    char word[NAME_SIZE];
    if (record->only_if && !dt__record_int(from, record->only_if)) return;
    if (record->pointer) member = *(const void *const *)member;
    if (!member) return;
    if (record->choices)
        dt__h5_put_text(layout, record->path,
                        dt__config_choice(record->choices, *(const int *)member, word));
    else if (record->type != DT__H5_TEXT)
        put_array(layout, record->path, record->type, record->count ? 1 : 0, &count, member);
    else if (record->count)
        dt__h5_put_names(layout, record->path, member, (size_t)count);
    else
        dt__h5_put_text(layout, record->path, member);
}

static dt_status get_attribute(const struct dt__h5_file *file, const struct dt__record *record,
                               struct dt_checkpoint *to)
{
    void *member = (char *)to + record->member;
    const struct dt__h5_item *item = dt__h5_find(file, DT__H5_ATTRIBUTE, record->path);
    const char *name = strchr(record->path, '@') + 1;
    if (!item && record->optional) return DT_OK;
    bool good = item && item->type == record->type;
    if (good && record->pointer) return dt__h5_text(file, record->path, member);
    if (good && record->type == DT__H5_U8) good = *(const uint8_t *)item->data <= 1;
    if (good && record->choices)
        good = (*(int *)member = dt__config_choice_index(record->choices, item->data)) >= 0;
    else if (good && (good = item->length <= NAME_SIZE))
        memcpy(member, item->data, item->length);
    return good ? DT_OK
                : dt_fail(DT_EFORMAT, "attribute %s of %.*s is missing or not as expected", name,
                          (int)(name - 1 - record->path), record->path);
}

/* Reads an array whose length was read as an attribute. */
static dt_status get_array(struct dt__h5_file *file, const struct dt__record *record,
                           struct dt_checkpoint *to)
{
    const uint64_t count = (uint64_t)dt__record_int(to, record->count);
    void *member = (char *)to + record->member, *values;
    const struct dt__h5_item *array;
    size_t found;
    if (record->optional && !dt__h5_has_array(file, record->path)) return DT_OK;
    DT_TRY(find_array(file, record->path, record->type, 1, &count, &array));
    if (record->type == DT__H5_TEXT) return dt__h5_names(file, record->path, member, &found);
    DT_TRY(dt__alloc(count, array->size, record->path, &values));
    memcpy(member, &values, sizeof values);
    return dt__h5_read(file, array, 0, count, record->type, values);
}

static dt_status get_records(struct dt__h5_file *file, int tables, bool arrays,
                             struct dt_checkpoint *to)
{
    for (int t = 0; t < tables; t++)
        for (const struct dt__record *record = dt__records[t]; record->path; record++)
            if ((record->count != 0) == arrays)
                DT_TRY(arrays ? get_array(file, record, to) : get_attribute(file, record, to));
    return DT_OK;
}

/* ---- saving --------------------------------------------------------------------------------- */

static dt_status put_all(struct dt__h5_layout *layout, const struct dt_model *model,
                         const struct dt_checkpoint *from, bool whole)
{
    const int32_t version = DT__FORMAT_VERSION; /* for other readers of HDF5 */
    const struct dt_schema *schema = &from->schema;
    struct dt_checkpoint borrowed = *from;
    struct dt__vector vector;
    put_array(layout, "/@format_version", DT__H5_I32, 0, NULL, &version);
    for (int t = 0; t < (whole ? DT__RECORD_TABLES : DT__RESUME_RECORDS); t++)
        for (const struct dt__record *record = dt__records[t]; record->path; record++)
            put_record(layout, record, from);
    if (whole) dt__h5_put_group(layout, "/optimizer");
    for (int i = 0; (whole || i == 0) && dt__vector_at(&borrowed, i, &vector); i++)
        if (vector.at && *vector.at) put_vector(layout, &vector, model, !whole);
    /* The columns of a table are stored as two lists of texts, unless they are all plain numbers
     * and there is no sparse part. */
    if (!schema->columns && schema->dense == schema->features) return DT_OK;
    return dt__columns_put(layout, "/schema", schema);
}

struct saving {
    struct dt__h5_layout *layout;
    struct header header;
    int fd;
    const char *path; /* path of the temporary file */
    uint64_t at;
};

/* Writes part of the file and extends the checksum. Zeros take the place of the user block, which
 * is written last. */
static dt_status saving_write_part(void *arg, const void *bytes, size_t length)
{
    struct saving *saving = arg;
    size_t before = saving->at < DT__USER_BLOCK ? DT__USER_BLOCK - (size_t)saving->at : 0;
    saving->at += length;
    if (length > before)
        saving->header.crc =
            dt__crc32c(saving->header.crc, (const char *)bytes + before, length - before);
    return dt__fd_write(saving->fd, saving->path, bytes, length);
}

static dt_status saving_fill_file(int fd, const char *path, void *arg)
{
    struct saving *saving = arg;
    unsigned char block[DT__USER_BLOCK];
    saving->fd = fd;
    saving->path = path;
    DT_TRY(dt__h5_stream(saving->layout, saving_write_part, saving));
    saving->header.bytes = saving->at - DT__USER_BLOCK;
    header_print(&saving->header, block);
    if (lseek(fd, 0, SEEK_SET) < 0) return dt__fail_errno(path, "cannot seek");
    return dt__fd_write(fd, path, block, sizeof block);
}

dt_status dt__file_save(const char *path, const struct dt_checkpoint *from, bool whole)
{
    struct dt_model *model;
    struct dt__h5_layout *layout = NULL;
    struct header written;
    dt_status status;
    DT_TRY(dt__model_create(&from->desc, &model));
    if (model->params != from->params_count)
        DT_GUARD(dt_fail(DT_EBUG, "a file of %" PRIu64 " parameters for a network of %zu",
                         from->params_count, model->params));
    DT_GUARD(dt__h5_layout_create(path, DT__USER_BLOCK, &layout));
    dt__h5_layout_fail(layout, put_all(layout, model, from, whole));
    struct saving saving = {.layout = layout, .header = {.whole = whole}};
    status = dt__file_write_by(path, saving_fill_file, &saving, file_verify, &written);
done:
    dt__h5_layout_free(layout);
    dt__model_destroy(model);
    return status;
}

/* ---- loading -------------------------------------------------------------------------------- */

/* Counts the names of state vectors, and checks that each is a plain identifier. */
static dt_status names_check(const char *where, const char *const *names, int *out_count)
{
    enum { MOST = 48 };
    int count = 0;
    for (; count < DT_CHECKPOINT_STATE && names[count]; count++) {
        size_t length = strspn(names[count], "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (length == 0 || length >= MOST || names[count][length])
            return dt_fail(DT_EFORMAT, "%s: '%s' is no name", where, names[count]);
    }
    *out_count = count;
    return DT_OK;
}

/* Checks the attributes before anything is allocated from their values. */
static dt_status attributes_check(struct dt_checkpoint *c, bool whole)
{
    const struct dt_schema *schema = &c->schema;
    const int64_t area = (int64_t)c->desc.shape[0] * c->desc.shape[1];
    const int *shape = schema->shape; /* (0, 0, 0): not known */
    size_t cells = 1;
    bool fits = true;
    int each;
    if (dt__model_desc_each(&c->desc, &each)) return dt_fail_prefix(DT_EFORMAT, "/model: ");
    for (int i = 0; i < 3; i++)
        fits = fits && shape[i] >= 0 && dt__size_mul(cells, (size_t)shape[i], &cells);
    fits =
        fits && (cells ? cells == (size_t)schema->features : !shape[0] && !shape[1] && !shape[2]);
    if (!fits || schema->task != c->desc.task || schema->features != area * c->desc.shape[2] ||
        schema->classes < 0 || schema->targets < 0 ||
        (int64_t)dt__schema_nout(schema) * each != c->desc.nout)
        return dt_fail(DT_EFORMAT, "/schema does not fit /model");
    if (!(schema->clip == 0 || schema->clip >= 1))
        return dt_fail(DT_EFORMAT, "/schema: clip is not as expected");
    if (!whole) return DT_OK;
    if (c->replicas < 1 || c->replicas > MAX_REPLICAS)
        return dt_fail(DT_EFORMAT, "%d replicas", c->replicas);
    if (c->groups < 0 || c->groups > c->replicas)
        return dt_fail(DT_EFORMAT, "/groups: %d groups", c->groups);
    DT_TRY(names_check("/optimizer", c->state_name, &c->nstate));
    DT_TRY(names_check("/groups", c->group_state_name, &c->group_nstate));
    return dt__alloc((size_t)(c->groups * c->group_nstate), sizeof *c->group_state, "groups",
                     &c->group_state);
}

/* Returns true if every encoded feature is a dense one with ascending quantiles. */
static bool quantiles_fit(const struct dt_schema *schema)
{
    const int columns = schema->encoded, each = columns > 0 ? schema->quantiles / columns : 0;
    if (!columns) return !schema->quantiles && !schema->quantile;
    bool good = columns > 0 && each > 1 && each * columns == schema->quantiles &&
                schema->encoded_feature && schema->quantile;
    for (int c = 0; good && c < columns; c++) {
        const int64_t *feature = &schema->encoded_feature[c];
        good = *feature >= 0 && *feature < schema->dense && (!c || feature[0] > feature[-1]);
        for (const float *q = schema->quantile + c * each, *end = q + each; good && q < end; q++)
            good = isfinite(*q) && (q + 1 == end || q[0] <= q[1]);
    }
    return good;
}

static dt_status arrays_check(const struct dt_schema *schema)
{
    if (!schema->mean != !schema->inv_std || !schema->target_mean != !schema->target_std ||
        !schema->target_least != !schema->target_greatest)
        return dt_fail(DT_EFORMAT, "/schema: a mean, or what goes with it, is missing");
    for (int i = 0; schema->mean && i < schema->features; i++)
        if (!isfinite(schema->mean[i]) || !isfinite(schema->inv_std[i]))
            return dt_fail(DT_EFORMAT, "/schema/mean and inv_std are not as expected");
    for (int i = 0; schema->target_mean && i < schema->targets; i++)
        if (!isfinite(schema->target_mean[i]) || !isfinite(schema->target_std[i]) ||
            !(schema->target_std[i] > 0))
            return dt_fail(DT_EFORMAT, "/schema/target_mean and target_std are not as expected");
    for (int i = 0; schema->target_least && i < schema->targets; i++)
        if (!(schema->target_least[i] <= schema->target_greatest[i]))
            return dt_fail(DT_EFORMAT, "/schema/target_least is above target_greatest");
    return DT_OK;
}

/* Returns true if the fitted values are usable. The residuals of each target must ascend. */
static bool certainty_fits(const struct dt_certainty *c, const struct dt_schema *schema)
{
    const int targets = schema->targets > 1 ? schema->targets : 1, n = c->residuals / targets;
    bool good = !c->known || (c->known == 1 && c->temperature > 0 && isfinite(c->temperature) &&
                              isfinite(c->cut) && (c->positive == 0 || c->positive == 1) &&
                              c->coverage >= 0 && c->coverage < 1);
    good =
        good && c->residuals >= 0 && n * targets == c->residuals && !c->residuals == !c->residual;
    for (int i = 0; good && i < c->residuals; i++)
        good = isfinite(c->residual[i]) && (i % n == 0 || c->residual[i] >= c->residual[i - 1]);
    return good;
}

dt_status dt__file_get(struct dt__h5_file *file, enum dt__wanted wanted, const char *near_path,
                       struct dt_checkpoint *out)
{
    const bool whole = wanted == DT__WANT_ALL || wanted == DT__WANT_CHECKPOINT;
    const int vectors = whole ? INT_MAX : wanted == DT__WANT_MODEL;
    const int tables = whole ? DT__RECORD_TABLES : DT__RESUME_RECORDS;
    struct dt_checkpoint to = {0};
    struct dt_model *model = NULL;
    struct dt__vector vector;
    dt_status status;
    if (dt__h5_find(file, DT__H5_ATTRIBUTE, "/model@nhidden"))
        return dt_fail(DT_EFORMAT, "written by dtrain 0.1, whose files this version does not load");
    DT_GUARD(get_records(file, tables, false, &to));
    status = dt__model_create(&to.desc, &model);
    if (status == DT_EUSAGE) /* the file describes no valid network */
        status = dt_fail_prefix(DT_EFORMAT, "/model: ");
    if (status) goto done;
    DT_GUARD(attributes_check(&to, whole));
    DT_GUARD(get_records(file, tables, true, &to));
    DT_GUARD(arrays_check(&to.schema));
    to.schema.dense = to.schema.features;
    DT_GUARD(dt__columns_get(file, "/schema", &to.schema));
    DT_GUARD(dt__encoding_check(&to.desc, true));
    if (!quantiles_fit(&to.schema) || to.desc.encode_columns != to.schema.encoded)
        DT_GUARD(dt_fail(DT_EFORMAT, "/schema/quantiles are not as expected"));
    if (!certainty_fits(&to.certainty, &to.schema))
        DT_GUARD(dt_fail(DT_EFORMAT, "/certainty is not as expected"));
    if (to.desc.encode && to.desc.dense != to.schema.dense)
        DT_GUARD(dt_fail(DT_EFORMAT, "/schema does not fit /model: its numbers are others"));
    if (to.desc.categories && (to.desc.dense != to.schema.dense ||
                               to.desc.categories != dt__schema_categories(&to.schema)))
        DT_GUARD(dt_fail(DT_EFORMAT, "/schema does not fit /model: its columns are others"));
    to.params_count = model->params;
    if (to.groups && dt__h5_find(file, DT__H5_GROUP, "/groups/0/difference"))
        DT_GUARD(dt__alloc((size_t)to.groups, sizeof *to.group_difference, "groups",
                           &to.group_difference));
    for (int i = 0; i < vectors && dt__vector_at(&to, i, &vector); i++)
        if (vector.at && (!vector.optional || dt__h5_find(file, DT__H5_GROUP, vector.path)))
            DT_GUARD(load_vector(file, &vector, model, near_path));
    *out = to;
    to = (struct dt_checkpoint){0};
done:
    dt__checkpoint_free(&to);
    dt__model_destroy(model);
    return status;
}

dt_status dt__file_load(const char *path, enum dt__wanted wanted, struct dt_checkpoint *out,
                        uint64_t *out_bytes)
{
    struct header header;
    struct dt__h5_file *file;
    DT_TRY(file_verify(path, &header));
    DT_TRY(dt__h5_open(path, &file));
    const char *near_path = wanted == DT__WANT_CHECKPOINT ? path : NULL;
    if (wanted == DT__WANT_ALL && !header.whole) wanted = DT__WANT_MODEL;
    dt_status status = near_path && !header.whole ? dt_fail(DT_EFORMAT, "a model, not a checkpoint")
                                                  : dt__file_get(file, wanted, near_path, out);
    dt__h5_close(file);
    if (out_bytes) *out_bytes = header.bytes + DT__USER_BLOCK;
    return dt__fail_path(status, path);
}

dt_status dt__checkpoint_load(const char *path, struct dt_checkpoint *out)
{
    return dt__file_load(path, DT__WANT_CHECKPOINT, out, NULL);
}
