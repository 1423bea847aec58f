/* A survey as bytes, for the other ranks. Only ranks of the same job exchange it, so that numbers
 * travel as they lie in memory; lengths are checked all the same. */
#include <string.h>

#include "data/source.h"

/* One list of members serves both ways: a stream writes what is there, or reads it back. */
struct stream {
    bool reading;
    struct dt_text out;
    const unsigned char *in;
    size_t left;
};

static dt_status flow(struct stream *stream, void *bytes, size_t length)
{
    if (!stream->reading) return dt_text_append(&stream->out, bytes, length);
    if (length > stream->left) return dt_fail(DT_EBUG, "a packed survey is too short");
    memcpy(bytes, stream->in, length);
    stream->in += length;
    stream->left -= length;
    return DT_OK;
}

/* An array of `count` items, or NULL. */
static dt_status flow_array(struct stream *stream, void *pointer, size_t count, size_t size)
{
    void *array;
    memcpy(&array, pointer, sizeof array);
    bool there = array != NULL;
    DT_TRY(flow(stream, &there, sizeof there));
    if (!there) return DT_OK;
    if (stream->reading) {
        if (count > stream->left) return dt_fail(DT_EBUG, "a packed survey is too short");
        DT_TRY(dt_alloc(count, size, "survey", &array));
        memcpy(pointer, &array, sizeof array);
    }
    return flow(stream, array, count * size);
}

static dt_status flow_text(struct stream *stream, char **text)
{
    size_t length = *text ? strlen(*text) + 1 : 0;
    DT_TRY(flow(stream, &length, sizeof length));
    return length ? flow_array(stream, text, length, 1) : DT_OK;
}

static dt_status flow_names(struct stream *stream, char ***names, size_t count)
{
    bool there = *names != NULL;
    DT_TRY(flow(stream, &there, sizeof there));
    if (!there) return DT_OK;
    if (stream->reading) DT_TRY(dt_alloc(count, sizeof **names, "names", names));
    for (size_t i = 0; i < count; i++)
        DT_TRY(flow_text(stream, &(*names)[i]));
    return DT_OK;
}

static dt_status flow_schema(struct stream *stream, struct dt_schema *schema)
{
    DT_TRY(flow(stream, &schema->task, sizeof schema->task));
    DT_TRY(flow(stream, &schema->features, sizeof schema->features));
    DT_TRY(flow(stream, &schema->classes, sizeof schema->classes));
    DT_TRY(flow(stream, &schema->targets, sizeof schema->targets));
    DT_TRY(flow(stream, &schema->scale, sizeof schema->scale));
    DT_TRY(flow_array(stream, &schema->mean, (size_t)schema->features, sizeof(float)));
    DT_TRY(flow_array(stream, &schema->inv_std, (size_t)schema->features, sizeof(float)));
    DT_TRY(flow_names(stream, &schema->feature_names, (size_t)schema->features));
    DT_TRY(flow_names(stream, &schema->label_names, (size_t)schema->classes));
    return flow_text(stream, &schema->label_column);
}

static dt_status flow_file(struct stream *stream, struct dt__file *file)
{
    DT_TRY(flow_text(stream, &file->path));
    DT_TRY(flow_text(stream, &file->labels));
    DT_TRY(flow(stream, &file->format, sizeof file->format));
    DT_TRY(flow(stream, &file->rows, sizeof file->rows));
    DT_TRY(flow(stream, &file->raw, sizeof file->raw));
    DT_TRY(flow(stream, &file->bytes, sizeof file->bytes));
    DT_TRY(flow(stream, &file->nmarks, sizeof file->nmarks));
    return flow_array(stream, &file->marks, file->nmarks, sizeof *file->marks);
}

static dt_status flow_source(struct stream *stream, struct dt_source *source)
{
    struct dt__holdout *holdout = &source->holdout;
    DT_TRY(flow_schema(stream, &source->schema));
    DT_TRY(flow(stream, &source->layout, sizeof source->layout));
    DT_TRY(flow(stream, &source->raw_rows, sizeof source->raw_rows));
    DT_TRY(flow(stream, &source->rows, sizeof source->rows));
    DT_TRY(flow(stream, &source->held_out, sizeof source->held_out));
    DT_TRY(flow(stream, &source->columns, sizeof source->columns));
    DT_TRY(flow_array(stream, &source->roles, source->columns, sizeof *source->roles));
    DT_TRY(flow(stream, &holdout->seed, sizeof holdout->seed));
    DT_TRY(flow(stream, &holdout->count, sizeof holdout->count));
    DT_TRY(flow(stream, &source->nfiles, sizeof source->nfiles));
    if (stream->reading) {
        DT_TRY(dt_alloc(source->nfiles, sizeof *source->files, "files", &source->files));
        DT_TRY(dt__holdout_init(holdout, holdout->seed, source->raw_rows, holdout->count));
    }
    for (size_t i = 0; i < source->nfiles; i++)
        DT_TRY(flow_file(stream, &source->files[i]));
    return DT_OK;
}

dt_status dt_source_pack(const struct dt_source *source, void *out_bytes, size_t *out_length)
{
    struct stream stream = {0};
    struct dt_source copy = *source; /* members are only read */
    dt_status status = flow_source(&stream, &copy);
    if (status) {
        dt_text_free(&stream.out);
        return status;
    }
    memcpy(out_bytes, &stream.out.data, sizeof stream.out.data);
    *out_length = stream.out.length;
    return DT_OK;
}

dt_status dt_source_unpack(const void *bytes, size_t length, struct dt_source **out)
{
    struct stream stream = {.reading = true, .in = bytes, .left = length};
    struct dt_source *source;
    DT_TRY(dt_alloc(1, sizeof *source, "survey", &source));
    dt_status status = flow_source(&stream, source);
    if (status)
        dt_source_destroy(source);
    else
        *out = source;
    return status;
}

dt_status dt_source_held_out(const struct dt_source *train, struct dt_source **out)
{
    void *bytes;
    size_t length;
    *out = NULL;
    if (!train->holdout.count) return DT_OK;
    DT_TRY(dt_source_pack(train, &bytes, &length));
    dt_status status = dt_source_unpack(bytes, length, out);
    dt_free(bytes);
    if (status) return status;
    (*out)->held_out = true;
    (*out)->rows = train->holdout.count;
    return DT_OK;
}
