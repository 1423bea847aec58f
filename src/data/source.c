/* A surveyed source. */
#include "data/source.h"

#include <string.h>

void dt_source_destroy(struct dt_source *source)
{
    if (!source) return;
    for (size_t i = 0; i < source->nfiles; i++) {
        dt_free(source->files[i].path);
        dt_free(source->files[i].labels);
        dt_free(source->files[i].marks);
    }
    dt_free(source->files);
    dt_free(source->roles);
    dt__holdout_free(&source->holdout);
    dt_schema_free(&source->schema);
    dt_free(source);
}

uint64_t dt_source_rows(const struct dt_source *source)
{
    return source->rows;
}

const struct dt_schema *dt_source_schema(const struct dt_source *source)
{
    return &source->schema;
}

uint64_t dt__source_raw(const struct dt_source *source, uint64_t row)
{
    return dt__holdout_select(&source->holdout, source->held_out, row);
}

uint64_t dt__source_before(const struct dt_source *source, uint64_t raw)
{
    uint64_t held = dt__holdout_before(&source->holdout, raw);
    return source->held_out ? held : raw - held;
}

void dt__source_file_rows(const struct dt_source *source, size_t file, uint64_t *begin,
                          uint64_t *count)
{
    const struct dt__file *f = &source->files[file];
    *begin = dt__source_before(source, f->raw);
    *count = dt__source_before(source, f->raw + f->rows) - *begin;
}

static uint32_t crc_text(uint32_t crc, const char *text)
{
    return text ? dt_crc32c(crc, text, strlen(text) + 1) : crc;
}

static uint32_t crc_schema(const struct dt_schema *schema)
{
    int sizes[] = {schema->task, schema->features, schema->classes, schema->targets};
    uint32_t crc = dt_crc32c(0, sizes, sizeof sizes);
    size_t floats = (size_t)schema->features * sizeof(float);
    crc = dt_crc32c(crc, &schema->scale, sizeof schema->scale);
    if (schema->mean) crc = dt_crc32c(crc, schema->mean, floats);
    if (schema->inv_std) crc = dt_crc32c(crc, schema->inv_std, floats);
    for (int i = 0; schema->feature_names && i < schema->features; i++)
        crc = crc_text(crc, schema->feature_names[i]);
    for (int i = 0; schema->label_names && i < schema->classes; i++)
        crc = crc_text(crc, schema->label_names[i]);
    return crc;
}

uint32_t dt_source_crc(const struct dt_source *source)
{
    uint32_t crc = crc_schema(&source->schema);
    crc = dt_crc32c(crc, &source->holdout.count, sizeof source->holdout.count);
    for (size_t i = 0; i < source->nfiles; i++) {
        const struct dt__file *file = &source->files[i];
        const char *slash = strrchr(file->path, '/');
        crc = crc_text(crc, slash ? slash + 1 : file->path);
        crc = dt_crc32c(crc, &file->rows, sizeof file->rows);
    }
    return crc;
}
