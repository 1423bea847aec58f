/* Output of `dtrain inspect` for checkpoints, models and data files. */
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/internal.h"
#include "state/directory.h"

/* ---- what checkpoints and models share ------------------------------------------------------ */

static void print_schema(const struct dt_schema *schema, FILE *out)
{
    enum { MOST = 10 };
    dt__text_print(out, "features      %d, scale %g%s%s", schema->features, schema->scale,
                   schema->mean ? ", normalised" : "", schema->feature_names ? ", named" : "");
    if (schema->clip > 0) dt__text_print(out, ", clipped at %g", schema->clip);
    fputc('\n', out);
    dt__text_print(out, "%-14s%d", schema->targets ? "targets" : "classes",
                   schema->targets ? schema->targets : schema->classes);
    if (schema->target_mean)
        dt__text_print(out, ", standardised for training: mean %g, deviation %g%s",
                       (double)schema->target_mean[0], (double)schema->target_std[0],
                       schema->targets > 1 ? " of the first" : "");
    if (schema->target_least)
        dt__text_print(out, ", predictions %s%g to %g", schema->targets > 1 ? "of the first " : "",
                       (double)schema->target_least[0], (double)schema->target_greatest[0]);
    for (int i = 0; schema->label_names && i < schema->classes && i < MOST; i++)
        dt__text_print(out, "%s%s", i ? ", " : " (", schema->label_names[i]);
    if (schema->label_names) dt__text_print(out, "%s)", schema->classes > MOST ? ", ..." : "");
    if (schema->label_names && schema->classes == 2)
        dt__text_print(out, ", positive: %s", schema->label_names[1]);
    fputc('\n', out);
}

static dt_status print_model(const struct dt_checkpoint *from, FILE *out)
{
    char *table, word[16];
    struct dt_model *model;
    uint64_t nonzero = 0;
    DT_TRY(dt__model_create(&from->desc, &model));
    dt_status status = dt__model_table(model, &table);
    dt__model_destroy(model);
    if (status) return status;
    for (uint64_t i = 0; i < from->params_count; i++)
        nonzero += from->params[i] != 0.0f;
    fprintf(out, "step          %" PRIu64 "\ntask          %s\n", from->step,
            dt__config_choice(DT_TASK_CHOICES, from->desc.task, word));
    const char *quantiles = from->desc.quantiles;
    if (from->desc.loss)
        dt__text_print(out, "loss          %s%s%s\n",
                       dt__config_choice(DT_LOSS_CHOICES, from->desc.loss, word),
                       quantiles ? " of " : "", quantiles ? quantiles : "");
    fprintf(out, "parameters    %" PRIu64 ", %" PRIu64 " not zero, params_crc32c %08" PRIx32 "\n%s",
            from->params_count, nonzero,
            dt__crc32c(0, from->params, from->params_count * sizeof(float)), table);
    dt_free(table);
    print_schema(&from->schema, out);
    if (from->best.known)
        dt__text_print(out, "best by then  %s %g at step %" PRIu64 "\n", from->best.metric,
                       from->best.value, from->best.step);
    return DT_OK;
}

/* Prints what the weights depend on besides the configuration: one line for each change in the
 * history, whose lines are JSON objects. */
static void print_history(const char *history, FILE *out)
{
    for (const char *line = history; line && *line;
         line += strcspn(line, "\n"), line += *line != 0) {
        json_t *change = json_loadb(line, strcspn(line, "\n"), 0, NULL), *value;
        const char *key;
        dt__text_print(out, "changed       at step %" JSON_INTEGER_FORMAT,
                       json_integer_value(json_object_get(change, "step")));
        json_object_foreach(change, key, value)
        {
            if (json_is_string(value) && strcmp(key, "kind") != 0)
                dt__text_print(out, ", %s %s", key, json_string_value(value));
        }
        fputc('\n', out);
        json_decref(change);
    }
}

/* ---- the three kinds of file ---------------------------------------------------------------- */

static void print_run(const struct dt_checkpoint *from, FILE *out)
{
    char mode[16];
    /* The configuration's text comes from dt_config_print and has a line "optimizer = adam". */
    const char *line = "\noptimizer = ", *at = strstr(from->config, line);
    at = at ? at + strlen(line) : "unknown";
    fprintf(out, "mode          %s, %d replicas, seed %" PRIu64 "\n",
            dt__config_choice(DT_MODE_CHOICES, from->mode, mode), from->replicas, from->seed);
    dt__text_print(out, "optimizer     %.*s", (int)strcspn(at, "\n"), at);
    for (int i = 0; i < from->nstate; i++)
        dt__text_print(out, "%s %s", i ? "," : ", which keeps", from->state_name[i]);
    fputc('\n', out);
    if (from->groups) {
        dt__text_print(out, "groups        %d, each with", from->groups);
        for (int i = 0; i < from->group_nstate; i++)
            dt__text_print(out, " %s", from->group_state_name[i]);
        dt__text_print(out, "%s%s\n", from->group_nstate ? "" : " no state",
                       from->group_difference ? "; the weights do not know of their last round yet"
                                              : "");
    }
    dt__text_print(out, "trained       %" PRIu64 " samples in %.1f s, kernel %s\n", from->samples,
                   from->wall_secs, from->kernel);
    print_history(from->history, out);
}

static dt_status print_ours(const char *path, FILE *out)
{
    uint64_t bytes;
    struct dt_checkpoint checkpoint;
    DT_TRY(dt__file_load(path, DT__WANT_ALL, &checkpoint, &bytes));
    fprintf(out, "%s: %s of %" PRIu64 " bytes, checksum right\n", path,
            checkpoint.replicas ? "checkpoint" : "model", bytes);
    dt_status status = print_model(&checkpoint, out);
    if (!status && checkpoint.replicas) print_run(&checkpoint, out);
    dt__checkpoint_free(&checkpoint);
    return status;
}

/* Prints the arrays of an HDF5 data file, with the reason for each array that cannot be read. */
static dt_status print_data(const char *path, FILE *out)
{
    enum { MOST = 100 };
    const struct dt__h5_item *item;
    struct dt__h5_file *file;
    int shown = 0;
    dt_status status = dt__h5_open(path, &file);
    if (status) return status;
    fprintf(out, "%s: data\n", path);
    for (size_t i = 0; (item = dt__h5_item_at(file, i)) && shown < MOST; i++) {
        if (item->kind != DT__H5_ARRAY && item->kind != DT__H5_REFUSED) continue;
        dt__text_print(out, "%s%s  (", shown++ < MOST - 1 ? "  " : "  ... ", item->path);
        for (int d = 0; d < item->rank; d++)
            fprintf(out, "%s%" PRIu64, d ? ", " : "", item->dims[d]);
        if (item->kind == DT__H5_REFUSED)
            fprintf(out, "%s)\n", (const char *)item->data);
        else if (item->type == DT__H5_TEXT)
            fprintf(out, ") texts\n");
        else
            fprintf(out, ") %s of %" PRIu64 " bits\n",
                    item->type >= DT__H5_F16 ? "floats" : "integers", item->size * 8);
    }
    dt__h5_close(file);
    return DT_OK;
}

dt_status dt__inspect(const char *path, FILE *out)
{
    char *file, start[7] = "";
    DT_TRY(dt__model_find(path, false, &file, NULL));
    if (dt__path_is_dir(path)) fprintf(out, "%s\n", file);
    /* The first bytes show whether dtrain wrote the file. If they cannot be read, the reader of
     * checkpoints reports the error. */
    int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, start, sizeof start);
    if (fd >= 0) close(fd);
    bool ours = got < 0 || (got == sizeof start && !memcmp(start, "dtrain ", sizeof start));
    dt_status status = ours ? print_ours(file, out) : print_data(file, out);
    if (status && !ours && memcmp(start, "\x89HDF", 4))
        status = dt_fail(DT_EFORMAT,
                         "%s: no table by its name (.csv, .tsv, .txt, .dat), and not HDF5: inspect "
                         "shows no other files",
                         file);
    dt_free(file);
    return status;
}
