/* Matches the columns of the files of a table with each other, in all formats that name columns. */
#include "data/file_columns.h"

#include <string.h>

#include "data/learned.h"

/* Makes the survey's columns from the header of the first training file. */
static dt_status columns_make(struct dt__survey *survey, struct dt__header *header)
{
    const struct dt_config *config = survey->config;
    struct dt__columns *columns = &survey->source->columns;
    DT_TRY(dt__survey_features(survey, header->features));
    DT_TRY(dt__columns_init(columns, config, header->features));
    const dt_status status = header->names ? dt__header_distinct(header) : DT_OK;
    if (status)
        return dt_fail(status,
                       "%s: rename one of them, or leave out both by their numbers in data.ignore",
                       dt_error_text());
    DT_TRY(dt__header_mark_categories(header, config, true));
    for (size_t i = 0; i < header->cells.count; i++) {
        if (header->roles[i] < 0) continue;
        struct dt__column *column = &columns->items[header->roles[i]];
        column->place = i;
        column->insisted = header->marks[i];
        if (column->insisted) column->kind = DT_COLUMN_CATEGORY;
        if (header->names) DT_TRY(dt__strdup(header->cells.items[i], &column->name));
    }
    return DT_OK;
}

/* Stores the header's names of the columns of weight, group and time, if they are not stored yet,
 * and the first header's names of the label columns, in the labels' order. If one of several labels
 * has no name, stores no names of labels, because a list cannot hold an empty name; labels are then
 * found by position. */
static dt_status names_record(struct dt__survey *survey, const struct dt__header *header)
{
    char **label = &survey->source->schema.label_column;
    const bool first = header->names && !survey->known && !*label;
    struct dt_text labels = {0};
    bool listed = true;
    for (size_t i = 0; i < header->nwants && header->names; i++) {
        const struct dt__want *want = &header->wants[i];
        const char *name = header->cells.items[want->column];
        char **const key = dt__survey_key_column(survey, want->role);
        if (key && !*key) DT_TRY(dt__strdup(name, key)); /* from any header, unlike labels */
        if (want->role > DT__ROLE_LABEL || !first) continue;
        if (header->labels > 1)
            dt__list_add(&labels, name);
        else
            dt__text_add(&labels, "%s", name);
        listed &= *name || header->labels == 1;
    }
    if (first && listed) return dt__text_end(&labels, label);
    dt__text_free(&labels);
    return DT_OK;
}

/* Reports columns that the earlier data lacks and that no key lists; only for the first such
 * file. */
static dt_status extra_report(struct dt__survey *survey, const char *path,
                              struct dt__header *header)
{
    const struct dt_config *config = survey->config;
    struct dt_text names = {0};
    size_t extra = 0;
    char *list;
    if (survey->warned_extra) return DT_OK;
    DT_TRY(dt__header_mark(header, "data.ignore", config->data.ignore, false));
    DT_TRY(dt__header_mark(header, "data.weight", config->data.weight, false));
    DT_TRY(dt__header_mark(header, "data.group", config->data.group, false));
    DT_TRY(dt__header_mark(header, "data.time", config->data.time, false));
    for (size_t i = 0; i < header->cells.count; i++)
        if (header->roles[i] == DT__ROLE_IGNORE && !header->marks[i])
            dt__list_show(&names, extra++, header->cells.items[i]);
    DT_TRY(dt__text_end(&names, &list));
    if (extra)
        dt__info("%s: columns that %s are ignored: %s", path,
                 survey->known ? "training did not have" : "the earlier files do not have", list);
    survey->warned_extra = extra > 0;
    dt_free(list);
    return DT_OK;
}

/* Makes the header look for the columns of data.time, data.group and data.weight, by the names that
 * they have in the earlier files. */
static dt_status keys_want(struct dt__header *header, struct dt__survey *survey)
{
    const struct dt_config *config = survey->config;
    const struct {
        const char *key, *text;
        int32_t role;
        bool wanted;
    } keys[] = {{"data.time", config->data.time, DT__ROLE_TIME, survey->keys.timed},
                {"data.group", config->data.group, DT__ROLE_GROUP, survey->keys.grouped},
                {"data.weight", config->data.weight, DT__ROLE_WEIGHT, survey->weighs}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].wanted)
            DT_TRY(dt__header_want(header, keys[i].key, keys[i].text,
                                   *dt__survey_key_column(survey, keys[i].role), false,
                                   keys[i].role));
    return DT_OK;
}

dt_status dt__header_survey(struct dt__header *header, struct dt__survey *survey,
                            const struct dt__lines *lines)
{
    const struct dt_config *config = survey->config;
    struct dt_source *source = survey->source;
    struct dt__columns *columns = &source->columns;
    const struct dt_schema *schema = &source->schema;
    if (survey->known && !columns->count) DT_TRY(dt__columns_of_schema(columns, schema));
    if (!survey->known && schema->columns)
        return dt_fail(DT_EMISMATCH,
                       "only other shards can be read together with shards of a table");
    if (!columns->count && schema->feature_names) { /* from a file of another format */
        DT_TRY(dt__columns_init(columns, config, (size_t)schema->features));
        for (size_t c = 0; c < columns->count; c++)
            DT_TRY(dt__strdup(schema->feature_names[c], &columns->items[c].name));
    }
    if (columns->count && columns->items[0].name && config->data.header != DT_HEADER_NO) {
        DT_TRY(keys_want(header, survey));
        DT_TRY(dt__header_want(header, "data.label", config->data.label, schema->label_column,
                               schema->targets > 1, DT__ROLE_LABEL));
        DT_TRY(dt__header_match(header, columns,
                                survey->known ? "the training data" : source->files[0].path,
                                config->data.header == DT_HEADER_YES));
        if (header->names) DT_TRY(extra_report(survey, lines->name, header));
        if (header->names) return names_record(survey, header);
    }
    DT_TRY(dt__header_decide(header, config, lines));
    if (!columns->count) {
        DT_TRY(columns_make(survey, header));
        return names_record(survey, header);
    }
    return dt__survey_same(survey, "features", header->features, columns->count);
}
