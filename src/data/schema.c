/* What is learned from the training data and kept with the model. */
#include "dtrain/data.h"

#include <string.h>

#include "data/names.h"

void dt_schema_free(struct dt_schema *schema)
{
    dt_free(schema->mean);
    dt_free(schema->inv_std);
    dt__names_free(schema->feature_names, (size_t)schema->features);
    dt__names_free(schema->label_names, (size_t)schema->classes);
    dt_free(schema->label_column);
    *schema = (struct dt_schema){0};
}

static dt_status copy_floats(const float *from, size_t n, float **out)
{
    if (!from) return DT_OK;
    DT_TRY(dt_alloc(n, sizeof *from, "normalisation", out));
    memcpy(*out, from, n * sizeof *from);
    return DT_OK;
}

dt_status dt_schema_copy(const struct dt_schema *schema, struct dt_schema *out)
{
    struct dt_schema copy = *schema;
    size_t features = (size_t)schema->features, classes = (size_t)schema->classes;
    dt_status status = DT_OK;
    copy.mean = copy.inv_std = NULL;
    copy.feature_names = copy.label_names = NULL;
    copy.label_column = NULL;
    DT_GUARD(copy_floats(schema->mean, features, &copy.mean));
    DT_GUARD(copy_floats(schema->inv_std, features, &copy.inv_std));
    DT_GUARD(dt__names_copy(schema->feature_names, features, &copy.feature_names));
    DT_GUARD(dt__names_copy(schema->label_names, classes, &copy.label_names));
    if (schema->label_column) DT_GUARD(dt_strdup(schema->label_column, &copy.label_column));
    *out = copy;
    return DT_OK;
done:
    dt_schema_free(&copy);
    return status;
}

int dt_schema_nout(const struct dt_schema *schema)
{
    if (schema->task == DT_REGRESS) return schema->targets;
    return schema->classes == 2 ? 1 : schema->classes;
}
