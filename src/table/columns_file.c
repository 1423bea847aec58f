/* Stores the columns of a table in the file of a model or a shard. */
#include "table/columns_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* MOST_DAYS: limit for days since 1970. The last date that is read, in the year 9999, is day
 * 2932896. */
enum { PATH_SIZE = 64, MOST_DAYS = 10000000 };

/* Writes "DENSE HASH_BITS NAMED HASH_TRIMS", then for each column "KIND FIRST FLAG FILL CATEGORIES
 * NAME". As a name may be empty, NAMED says whether the table has a header. The earliest files have
 * neither NAMED nor HASH_TRIMS. */
dt_status dt__columns_put(struct dt__h5_layout *layout, const char *group,
                          const struct dt_schema *schema)
{
    struct dt__names columns = {0}, categories = {0};
    char path[PATH_SIZE], head[32], *line = NULL;
    dt_status status;
    snprintf(head, sizeof head, "%d %d %d %d", schema->dense, schema->hash_bits,
             schema->columns && schema->columns[0].name, schema->hash_trims);
    DT_GUARD(dt__names_add(&columns, head, strlen(head)));
    for (int c = 0; c < schema->ncolumns; c++) {
        const struct dt_column *column = &schema->columns[c];
        dt_free(line);
        line = NULL;
        DT_GUARD(dt__format(&line, "%d %d %d %.9g %d %s", column->kind, column->first, column->flag,
                            (double)column->fill, column->ncategories,
                            column->name ? column->name : ""));
        DT_GUARD(dt__names_add(&columns, line, strlen(line)));
        for (int i = 0; i < column->ncategories; i++)
            DT_GUARD(
                dt__names_add(&categories, column->categories[i], strlen(column->categories[i])));
    }
    snprintf(path, sizeof path, "%s/columns", group);
    dt__h5_put_names(layout, path, columns.items, columns.count);
    snprintf(path, sizeof path, "%s/categories", group);
    if (categories.count) dt__h5_put_names(layout, path, categories.items, categories.count);
done:
    dt_free(line);
    dt__names_free(columns.items, columns.count);
    dt__names_free(categories.items, categories.count);
    return status;
}

static dt_status get_list(const struct dt__h5_file *file, const char *group, const char *name,
                          struct dt__names *out)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", group, name);
    if (!dt__h5_has_array(file, path)) return DT_OK;
    return dt__h5_names(file, path, &out->items, &out->count);
}

/* Returns true if the feature numbers read from a file are those that dt__columns_place assigns. */
static bool columns_fit(struct dt_schema *schema)
{
    if (!schema->columns) return schema->dense == 0 || schema->dense == schema->features;
    const struct dt__placed placed = dt__columns_place(schema);
    if (!schema->features && placed.features <= DT__MAX_FEATURES)
        schema->features = (int)placed.features;
    return placed.same && placed.features == (uint64_t)schema->features &&
           (schema->dense == schema->features || placed.numbers == (uint64_t)schema->dense);
}

/* Parses a column's line and returns its name, the end of the line; NULL if the line is
 * malformed. */
static const char *column_scan(const char *line, struct dt_column *out)
{
    int name = -1;
    char fill[32] = "", *rest = fill;
    const int words = sscanf(line, "%d %d %d %31s %d%n", &out->kind, &out->first, &out->flag, fill,
                             &out->ncategories, &name);
    out->fill = (float)dt__real_read(fill, &rest);
    const int kind = out->kind, count = out->ncategories;
    if (words < 5 || name < 0 || *rest || kind < DT_COLUMN_NUMBER || kind > DT_COLUMN_DATE ||
        (kind == DT_COLUMN_CATEGORY && out->flag) || count < 0 || isinf(out->fill) ||
        (kind == DT_COLUMN_NUMBER && count) ||
        (kind == DT_COLUMN_DATE && (count != 1 || fabsf(out->fill) > MOST_DAYS)))
        return NULL;
    return line + name + strspn(line + name, " \t"); /* a name may begin with a line break */
}

static dt_status columns_from_names(const char *group, const struct dt__names *columns,
                                    struct dt__names *categories, struct dt_schema *schema)
{
    size_t at = 0;
    int named = 0;
    if (sscanf(columns->items[0], "%d %d %d %d", &schema->dense, &schema->hash_bits, &named,
               &schema->hash_trims) < 2 ||
        schema->hash_bits < 0 || schema->hash_bits > 30)
        return dt_fail(DT_EFORMAT, "%s/columns are malformed", group);
    for (size_t c = 1; c < columns->count; c++) {
        const char *blank = strrchr(columns->items[c], ' ');
        named |= blank && blank[1];
    }
    if (columns->count > 1)
        DT_TRY(dt__alloc(columns->count - 1, sizeof *schema->columns, "columns", &schema->columns));
    schema->ncolumns = (int)columns->count - 1;
    for (size_t c = 0; c + 1 < columns->count; c++) {
        struct dt_column *column = &schema->columns[c], read = {0};
        const char *name = column_scan(columns->items[c + 1], &read);
        const size_t count = (size_t)read.ncategories;
        struct dt__dates dates;
        if (!name || count > categories->count - at ||
            (read.kind == DT_COLUMN_DATE && !dt__dates_parse_form(categories->items[at], &dates)))
            return dt_fail(DT_EFORMAT, "%s/columns: column %zu is malformed", group, c);
        *column = read;
        column->ncategories = 0; /* until the texts are in place */
        if (named) DT_TRY(dt__strdup(name, &column->name));
        if (!count) continue;
        DT_TRY(dt__alloc(count, sizeof *column->categories, "categories", &column->categories));
        memcpy(column->categories, categories->items + at, count * sizeof *column->categories);
        /* the column owns the texts now */
        memset(categories->items + at, 0, count * sizeof *categories->items);
        column->ncategories = (int)count;
        at += count;
    }
    return columns_fit(schema) ? DT_OK : dt_fail(DT_EFORMAT, "%s/columns do not fit it", group);
}

dt_status dt__columns_get(const struct dt__h5_file *file, const char *group,
                          struct dt_schema *schema)
{
    struct dt__names columns = {0}, categories = {0};
    dt_status status;
    DT_GUARD(get_list(file, group, "columns", &columns));
    if (!columns.count) goto done;
    DT_GUARD(get_list(file, group, "categories", &categories));
    status = columns_from_names(group, &columns, &categories, schema);
done:
    dt__names_free(columns.items, columns.count);
    dt__names_free(categories.items, categories.count);
    return status;
}
