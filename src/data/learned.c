/* Records in a survey what the readers find in each file, and checks that the files agree. */
#include "data/learned.h"

#include <inttypes.h>
#include <string.h>

#include "table/header.h"

char **dt__survey_key_column(struct dt__survey *survey, int32_t role)
{
    if (role > DT__ROLE_TIME || role < DT__ROLE_WEIGHT) return NULL;
    return &survey->key_columns[DT__ROLE_TIME - role];
}

dt_status dt__survey_same(const struct dt__survey *survey, const char *what, uint64_t now,
                          uint64_t before)
{
    if (!before || now == before) return DT_OK;
    return dt_fail(DT_EMISMATCH, "%" PRIu64 " %s, %s %" PRIu64, now, what,
                   survey->known ? "the model has" : "the earlier files have", before);
}

dt_status dt__survey_features(struct dt__survey *survey, uint64_t features)
{
    int *before = &survey->source->schema.features;
    if (features > DT__MAX_FEATURES)
        return dt_fail(DT_EFORMAT, "%" PRIu64 " features; expected at most %d", features,
                       DT__MAX_FEATURES);
    DT_TRY(dt__survey_same(survey, "features", features, (uint64_t)*before));
    *before = (int)features;
    return DT_OK;
}

dt_status dt__survey_targets(struct dt__survey *survey, uint64_t targets)
{
    int *before = &survey->source->schema.targets;
    if (!targets || targets > DT__MAX_TARGETS)
        return dt_fail(DT_EFORMAT, "%" PRIu64 " targets a row; expected 1 to %d", targets,
                       DT__MAX_TARGETS);
    DT_TRY(dt__survey_same(survey, "targets a row", targets, (uint64_t)*before));
    *before = (int)targets;
    return DT_OK;
}

/* Returns true if shapes a and b (3 sizes each) are equal but for dimensions of size 1. The values
 * of a row then have the same order in both. */
static bool shapes_agree(const int *a, const int *b)
{
    int sizes[2][3] = {{0}}, count[2] = {0};
    for (int i = 0; i < 6; i++) {
        const int size = i < 3 ? a[i] : b[i - 3];
        if (size != 1) sizes[i / 3][count[i / 3]++] = size;
    }
    return !memcmp(sizes[0], sizes[1], sizeof sizes[0]);
}

dt_status dt__survey_shape(struct dt__survey *survey, int rank, const uint64_t *dims)
{
    const struct dt_config *config = survey->config;
    int *shape = survey->source->schema.shape;
    if (rank < 3 || rank > 4) return DT_OK;
    int now[3] = {(int)dims[1], (int)dims[2], rank == 4 ? (int)dims[3] : 1};
    const bool same = survey->known ? *config->data.shape || shapes_agree(shape, now)
                                    : !memcmp(shape, now, sizeof now);
    if (shape[0] && !same)
        return dt_fail(DT_EMISMATCH, "rows of %d x %d x %d, %s %d x %d x %d", now[0], now[1],
                       now[2], survey->known ? "the model has" : "in the earlier files", shape[0],
                       shape[1], shape[2]);
    if (survey->known) return DT_OK;
    const char *layers = config->model.layers;
    if (!shape[0] && !*config->data.shape && now[0] <= 4 && now[0] < now[1] && now[1] == now[2] &&
        (strstr(layers, "conv") || strstr(layers, "pool") || *config->data.augment))
        dt__warn("rows of %d x %d x %d are read as height x width x channels. If the channels come "
                 "first, as in PyTorch, reorder them with numpy: x.transpose(0, 2, 3, 1)",
                 now[0], now[1], now[2]);
    memcpy(shape, now, sizeof now);
    return DT_OK;
}

dt_status dt__survey_names(struct dt__survey *survey, struct dt__names *names)
{
    struct dt_schema *schema = &survey->source->schema;
    char *const *before = schema->feature_names;
    const struct dt__columns *columns = &survey->source->columns;
    for (size_t i = 0; i < names->count; i++) {
        const char *name = before ? before[i] : i < columns->count ? columns->items[i].name : NULL;
        if (name && !dt__text_same(name, names->items[i]))
            return dt_fail(DT_EMISMATCH, "feature %zu is named '%s', but in the earlier files '%s'",
                           i, names->items[i], name);
    }
    if (before || survey->known) return DT_OK;
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        size_t length = strlen(name);
        dt__text_trim(&name, &length);
        memmove(names->items[i], name, length);
        names->items[i][length] = 0;
    }
    schema->feature_names = names->items;
    *names = (struct dt__names){0};
    return DT_OK;
}

dt_status dt__survey_columns(struct dt__survey *survey, struct dt_schema *read)
{
    struct dt_schema *schema = &survey->source->schema;
    bool same = schema->ncolumns == read->ncolumns && schema->hash_bits == read->hash_bits &&
                schema->hash_trims == read->hash_trims;
    for (int c = 0; same && c < read->ncolumns; c++) {
        const struct dt_column *a = &schema->columns[c], *b = &read->columns[c];
        same = a->kind == b->kind && a->first == b->first && a->flag == b->flag &&
               a->ncategories == b->ncategories &&
               dt__text_same(a->name ? a->name : "", b->name ? b->name : "");
        for (int i = 0; same && i < b->ncategories; i++)
            same = dt__text_same(a->categories[i], b->categories[i]);
    }
    if (schema->columns && !same)
        return dt_fail(DT_EMISMATCH,
                       "the columns or their categories differ from those of the earlier files "
                       "(give all files to one run of dtrain shard)");
    if (survey->known || schema->columns || !read->columns) return DT_OK;
    schema->columns = read->columns;
    schema->ncolumns = read->ncolumns;
    schema->hash_bits = read->hash_bits;
    schema->hash_trims = read->hash_trims;
    read->columns = NULL;
    return DT_OK;
}
