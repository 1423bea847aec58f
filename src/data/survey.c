/* The survey: what the files hold, counted and checked once, on the bank. */
#include "data/survey.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "data/paths.h"
#include "data/reader.h"
#include "data/stats.h"

enum { MARK_BYTES = 1 << 17, MAX_MARKS = 1 << 16 };

/* ---- what readers report -------------------------------------------------------------------- */

dt_status dt__survey_features(struct dt__survey *survey, uint64_t features)
{
    if (features > DT__MAX_FEATURES)
        return dt_fail(DT_EFORMAT, "%" PRIu64 " features, at most %d", features, DT__MAX_FEATURES);
    if (survey->features && (uint64_t)survey->features != features)
        return dt_fail(DT_EMISMATCH, "%" PRIu64 " features, %s %d", features,
                       survey->known ? "the model has" : "the files before have", survey->features);
    survey->features = (int)features;
    if (!survey->known) survey->source->schema.features = (int)features;
    return DT_OK;
}

dt_status dt__survey_targets(struct dt__survey *survey, uint64_t targets)
{
    if (!targets || targets > DT__MAX_TARGETS)
        return dt_fail(DT_EFORMAT, "%" PRIu64 " targets a row", targets);
    if (survey->targets && (uint64_t)survey->targets != targets)
        return dt_fail(DT_EMISMATCH, "%" PRIu64 " targets a row, %s %d", targets,
                       survey->known ? "the model has" : "the files before have", survey->targets);
    survey->targets = (int)targets;
    return DT_OK;
}

dt_status dt__survey_names(struct dt__survey *survey, struct dt__names *names)
{
    struct dt_schema *schema = &survey->source->schema;
    char *const *before = survey->known ? survey->known->feature_names : schema->feature_names;
    for (size_t i = 0; before && i < names->count; i++)
        if (strcmp(before[i], names->items[i]))
            return dt_fail(DT_EMISMATCH, "feature %zu is named '%s', in the data before '%s'", i,
                           names->items[i], before[i]);
    if (before || survey->known) return DT_OK;
    schema->feature_names = names->items;
    *names = (struct dt__names){0};
    return DT_OK;
}

dt_status dt__survey_mark(struct dt__file *file, uint64_t row, uint64_t offset, uint64_t line)
{
    uint64_t step = file->bytes / MAX_MARKS > MARK_BYTES ? file->bytes / MAX_MARKS : MARK_BYTES;
    if (file->nmarks && offset - file->marks[file->nmarks - 1].offset < step) return DT_OK;
    DT_TRY(dt_grow(&file->marks, &file->marks_capacity, file->nmarks + 1, sizeof *file->marks,
                   "marks in a text file"));
    file->marks[file->nmarks++] = (struct dt__mark){row, offset, line};
    return DT_OK;
}

/* ---- files ---------------------------------------------------------------------------------- */

static dt_status measure(const char *path, uint64_t *out)
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
    DT_TRY(measure(file->path, &bytes));
    if (file->labels) DT_TRY(measure(file->labels, &bytes));
    *out = bytes;
    return DT_OK;
}

static dt_status pair_up(const char *key, struct dt__names *paths, struct dt__names *labels,
                         struct dt_source *source)
{
    if (!paths->count) return dt_fail(DT_EUSAGE, "%s: no files given", key);
    if (labels->count && labels->count != paths->count)
        return dt_fail(DT_EMISMATCH, "%s: %zu files, but %zu label files", key, paths->count,
                       labels->count);
    DT_TRY(dt_alloc(paths->count, sizeof *source->files, "files", &source->files));
    source->nfiles = paths->count;
    for (size_t i = 0; i < paths->count; i++) {
        source->files[i].path = paths->items[i];
        paths->items[i] = NULL;
        if (!labels->count) continue;
        source->files[i].labels = labels->items[i];
        labels->items[i] = NULL;
    }
    return DT_OK;
}

static dt_status list_files(const struct dt_config *config, bool eval, struct dt_source *source)
{
    struct dt__names paths = {0}, labels = {0};
    const char *key = eval ? "data.eval" : "data.train";
    dt_status status = dt__paths_expand(key, eval ? config->data.eval : config->data.train, &paths);
    if (!status)
        status =
            dt__paths_expand(eval ? "data.eval_labels" : "data.train_labels",
                             eval ? config->data.eval_labels : config->data.train_labels, &labels);
    if (!status) status = pair_up(key, &paths, &labels, source);
    dt__names_free(paths.items, paths.count);
    dt__names_free(labels.items, labels.count);
    return status;
}

static dt_status survey_file(struct dt__survey *survey, struct dt__file *file)
{
    file->format = survey->config->data.format;
    DT_TRY(dt__file_measure(file, &file->bytes));
    if (!file->bytes) return dt_fail(DT_EFORMAT, "%s: the file is empty", file->path);
    if (file->format == DT_FORMAT_AUTO) DT_TRY(dt__format_detect(file->path, &file->format));
    if (file->labels && file->format != DT_FORMAT_IDX)
        return dt_fail(DT_EMISMATCH, "%s: %s data has no label files", file->path,
                       dt__format_of(file->format)->name);
    return dt__format_of(file->format)->survey(survey, file);
}

static dt_status survey_files(struct dt__survey *survey)
{
    struct dt_source *source = survey->source;
    for (size_t i = 0; i < source->nfiles; i++) {
        struct dt__file *file = &source->files[i];
        DT_TRY(dt_stop_check());
        DT_TRY(survey_file(survey, file));
        dt_work_gets_on();
        file->raw = source->raw_rows;
        source->raw_rows += file->rows;
    }
    return DT_OK;
}

/* ---- schema --------------------------------------------------------------------------------- */

static dt_status learn_schema(struct dt__survey *survey)
{
    struct dt_schema *schema = &survey->source->schema;
    schema->task = survey->task;
    schema->features = survey->features;
    schema->scale = survey->config->data.scale;
    schema->label_column = survey->label_column;
    survey->label_column = NULL;
    if (survey->task == DT_CLASSIFY) return dt__labels_finish(&survey->labels, schema);
    schema->targets = survey->targets ? survey->targets : 1;
    return DT_OK;
}

static dt_status make_schema(struct dt__survey *survey)
{
    struct dt_source *source = survey->source;
    if (survey->known)
        DT_TRY(dt_schema_copy(survey->known, &source->schema));
    else
        DT_TRY(learn_schema(survey));
    source->layout.features = source->schema.features;
    source->layout.targets = source->schema.targets;
    source->layout.bytes = !survey->floats;
    return DT_OK;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static dt_status hold_out(const struct dt_config *config, struct dt_source *source)
{
    double fraction = config->data.eval_fraction;
    uint64_t count = (uint64_t)rint(fraction * (double)source->raw_rows);
    if (fraction > 0 && (!count || count == source->raw_rows))
        return dt_fail(DT_EMISMATCH,
                       "data.eval_fraction: of %" PRIu64 " rows it holds out %" PRIu64,
                       source->raw_rows, count);
    DT_TRY(dt__holdout_init(&source->holdout, (uint64_t)config->run.seed, source->raw_rows, count));
    source->rows = source->held_out ? count : source->raw_rows - count;
    return DT_OK;
}

static void free_survey(struct dt__survey *survey)
{
    dt__labels_free(&survey->labels);
    dt_free(survey->label_column);
}

static dt_status run_survey(struct dt__survey *survey, bool eval_files)
{
    const struct dt_config *config = survey->config;
    struct dt_source *source = survey->source;
    DT_TRY(list_files(config, eval_files, source));
    DT_TRY(survey_files(survey));
    DT_TRY(make_schema(survey));
    if (!eval_files)
        DT_TRY(hold_out(config, source));
    else
        source->rows = source->raw_rows;
    if (survey->known || config->data.normalize == DT_NORMALIZE_NONE) return DT_OK;
    return dt__stats_learn(source);
}

static dt_status check_known(const struct dt_config *config, const struct dt_schema *known)
{
    if (known && known->task != config->model.task)
        return dt_fail(DT_EMISMATCH, "model.task is not that of the model");
    return DT_OK;
}

dt_status dt_source_survey(const struct dt_config *config, enum dt_part part,
                           const struct dt_schema *known, struct dt_source **out)
{
    bool files = part == DT_PART_EVAL && *config->data.eval;
    struct dt_source *source;
    *out = NULL;
    if (part == DT_PART_EVAL && !files && !(config->data.eval_fraction > 0)) return DT_OK;
    if (*config->data.eval && config->data.eval_fraction > 0)
        return dt_fail(DT_EUSAGE, "data.eval and data.eval_fraction exclude each other");
    DT_TRY(check_known(config, known));
    DT_TRY(dt_alloc(1, sizeof *source, "survey", &source));
    source->held_out = part == DT_PART_EVAL && !files;
    struct dt__survey survey = {.config = config,
                                .known = known,
                                .source = source,
                                .task = config->model.task,
                                .labels.known = known};
    if (known) survey.features = known->features;
    if (known) survey.targets = known->targets;
    dt_status status = run_survey(&survey, files);
    free_survey(&survey);
    if (status)
        dt_source_destroy(source);
    else
        *out = source;
    return status;
}
