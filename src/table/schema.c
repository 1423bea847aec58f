/* Visits and frees the members of a schema, and derives facts from it. Other files handle
 * statistics, columns and labels. */
#include "table/schema.h"

#include <string.h>

#include "table/schema.h"
#include "text/text.h"

dt_status dt__schema_visit(struct dt_schema *schema, dt__member_fn *visit, void *arg)
{
    const size_t features = (size_t)schema->features, targets = (size_t)schema->targets;
    DT_TRY(visit(arg, DT__MEMBER_FLOATS, &schema->mean, features));
    DT_TRY(visit(arg, DT__MEMBER_FLOATS, &schema->inv_std, features));
    DT_TRY(visit(arg, DT__MEMBER_NUMBERS, &schema->encoded_feature, (size_t)schema->encoded));
    DT_TRY(visit(arg, DT__MEMBER_FLOATS, &schema->quantile, (size_t)schema->quantiles));
    DT_TRY(visit(arg, DT__MEMBER_FLOATS, &schema->target_mean, targets));
    DT_TRY(visit(arg, DT__MEMBER_FLOATS, &schema->target_std, targets));
    DT_TRY(visit(arg, DT__MEMBER_FLOATS, &schema->target_least, targets));
    DT_TRY(visit(arg, DT__MEMBER_FLOATS, &schema->target_greatest, targets));
    DT_TRY(visit(arg, DT__MEMBER_NAMES, &schema->feature_names, features));
    DT_TRY(visit(arg, DT__MEMBER_NAMES, &schema->label_names, (size_t)schema->classes));
    DT_TRY(visit(arg, DT__MEMBER_NUMBERS, &schema->label_numbers, (size_t)schema->classes));
    DT_TRY(visit(arg, DT__MEMBER_TEXT, &schema->label_column, 1));
    DT_TRY(visit(arg, DT__MEMBER_COLUMNS, &schema->columns, (size_t)schema->ncolumns));
    for (int c = 0; schema->columns && c < schema->ncolumns; c++) {
        struct dt_column *column = &schema->columns[c];
        DT_TRY(visit(arg, DT__MEMBER_TEXT, &column->name, 1));
        DT_TRY(visit(arg, DT__MEMBER_NAMES, &column->categories, (size_t)column->ncategories));
    }
    return DT_OK;
}

static dt_status member_free(void *arg, enum dt__member kind, void *member, size_t count)
{
    void *memory;
    (void)arg;
    memcpy(&memory, member, sizeof memory);
    if (kind == DT__MEMBER_NAMES)
        dt__names_free(memory, count);
    else if (kind != DT__MEMBER_COLUMNS) /* the members of the columns are visited later */
        dt_free(memory);
    return DT_OK;
}

void dt__schema_free(struct dt_schema *schema)
{
    dt__schema_visit(schema, member_free, NULL);
    dt_free(schema->columns);
    *schema = (struct dt_schema){0};
}

void dt__schema_forget_quantiles(struct dt_schema *schema)
{
    dt_free(schema->encoded_feature);
    dt_free(schema->quantile);
    schema->encoded_feature = NULL;
    schema->quantile = NULL;
    schema->encoded = schema->quantiles = 0;
}

int dt__schema_categories(const struct dt_schema *schema)
{
    int count = 0;
    for (int c = 0; schema->columns && c < schema->ncolumns; c++)
        count += schema->columns[c].kind == DT_COLUMN_CATEGORY;
    return count;
}

int dt__schema_nout(const struct dt_schema *schema)
{
    if (!dt__targets_of(schema->task, DT_LOSS_AUTO)->classes) return schema->targets;
    return schema->classes == 2 ? 1 : schema->classes;
}

struct dt_table_size dt__schema_size(const struct dt_schema *schema, uint64_t rows, bool evaluates)
{
    return (struct dt_table_size){.rows = rows,
                                  .features = schema->features,
                                  .numbers = schema->encoded,
                                  .classes = schema->classes,
                                  .sparse = schema->dense < schema->features,
                                  .evaluates = evaluates};
}
