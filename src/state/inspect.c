/* What dtrain inspect says of checkpoints, models and shards. */
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/internal.h"
#include "state/directory.h"

/* ---- what checkpoints and models share ------------------------------------------------------ */

/* Names come from a file: no control character reaches a terminal. */
static void print_name(const char *name, FILE *out)
{
    for (; *name; name++)
        fputc(dt__is_control(*name) ? '?' : *name, out);
}

static void print_schema(const struct dt_schema *schema, FILE *out)
{
    fprintf(out, "features      %d, scale %g%s%s", schema->features, schema->scale,
            schema->mean ? ", normalised" : "", schema->feature_names ? ", named" : "");
    if (schema->clip > 0) fprintf(out, ", clipped at %g", schema->clip);
    fprintf(out, "\n");
    if (schema->task == DT_TASK_REGRESS) {
        fprintf(out, "targets       %d", schema->targets);
        if (schema->target_mean)
            fprintf(out, ", learned standardised: mean %g, deviation %g%s",
                    (double)schema->target_mean[0], (double)schema->target_std[0],
                    schema->targets > 1 ? " of the first" : "");
        fprintf(out, "\n");
        return;
    }
    fprintf(out, "classes       %d", schema->classes);
    if (schema->label_names) {
        enum { MOST = 10 };
        for (int i = 0; i < schema->classes && i < MOST; i++) {
            fprintf(out, "%s", i ? ", " : " (");
            print_name(schema->label_names[i], out);
        }
        fprintf(out, "%s)", schema->classes > MOST ? ", ..." : "");
        if (schema->classes == 2) {
            fprintf(out, ", positive: ");
            print_name(schema->label_names[1], out);
        }
    }
    fprintf(out, "\n");
}

static dt_status print_model(const struct dt_checkpoint *from, FILE *out)
{
    char *table, task[16], loss[16];
    struct dt_model *model;
    uint64_t nonzero = 0;
    fprintf(out, "step          %" PRIu64 "\n", from->step);
    DT_TRY(dt_model_create(&from->desc, &model));
    dt_status status = dt_model_table(model, &table);
    dt_model_destroy(model);
    if (status) return status;
    for (uint64_t i = 0; i < from->params_count; i++)
        nonzero += from->params[i] != 0.0f;
    uint32_t crc = dt_crc32c(0, from->params, from->params_count * sizeof(float));
    fprintf(out, "task          %s\n", dt_config_word(DT_TASK_WORDS, from->desc.task, task));
    if (from->desc.loss)
        fprintf(out, "loss          %s\n", dt_config_word(DT_LOSS_WORDS, from->desc.loss, loss));
    fprintf(out, "parameters    %" PRIu64 ", %" PRIu64 " not zero, params_crc32c %08" PRIx32 "\n%s",
            from->params_count, nonzero, crc, table);
    dt_free(table);
    print_schema(&from->schema, out);
    if (!from->best.known) return DT_OK;
    fprintf(out, "best          ");
    print_name(from->best.metric, out);
    fprintf(out, " %g at step %" PRIu64 "\n", from->best.value, from->best.step);
    return DT_OK;
}

/* What the weights follow from beyond the configuration: a line each of the history, which is
 * JSON. */
static void print_history(const char *history, FILE *out)
{
    for (const char *line = history; line && *line;
         line += strcspn(line, "\n"), line += *line != 0) {
        json_t *change = json_loadb(line, strcspn(line, "\n"), 0, NULL), *value;
        const char *key;
        fprintf(out, "changed       at step %" JSON_INTEGER_FORMAT,
                json_integer_value(json_object_get(change, "step")));
        json_object_foreach(change, key, value)
        {
            if (!json_is_string(value) || !strcmp(key, "kind")) continue;
            fprintf(out, ", ");
            print_name(key, out);
            fputc(' ', out);
            print_name(json_string_value(value), out);
        }
        fputc('\n', out);
        json_decref(change);
    }
}

/* ---- the three kinds of file ---------------------------------------------------------------- */

static void print_run(const struct dt_checkpoint *from, FILE *out)
{
    char mode[16], optimizer[32];
    fprintf(out, "mode          %s, %d replicas, seed %" PRIu64 "\n",
            dt_config_word(DT_MODE_WORDS, from->mode, mode), from->replicas, from->seed);
    /* The configuration's text, which the program wrote, has a line "optimizer = adam". */
    const char *line = "\noptimizer = ", *at = from->config ? strstr(from->config, line) : NULL;
    if (at) at += strlen(line);
    (void)snprintf(optimizer, sizeof optimizer, "%.*s", at ? (int)strcspn(at, "\n") : 7,
                   at ? at : "unknown");
    fprintf(out, "optimizer     ");
    print_name(optimizer, out);
    for (int i = 0; i < from->nstate; i++)
        fprintf(out, "%s %s", i ? "," : ", which keeps", from->state_name[i]);
    fprintf(out, "\n");
    if (from->groups) {
        fprintf(out, "groups        %d, each with", from->groups);
        for (int i = 0; i < from->group_nstate; i++)
            fprintf(out, " %s", from->group_state_name[i]);
        fprintf(out, "%s%s\n", from->group_nstate ? "" : " no state",
                from->group_difference ? "; the weights do not know of their last round yet" : "");
    }
    fprintf(out, "trained       %" PRIu64 " samples in %.1f s, kernel ", from->samples,
            from->wall_secs);
    print_name(from->kernel, out);
    fprintf(out, "\n");
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
    dt_checkpoint_free(&checkpoint);
    return status;
}

/* The arrays of a file of data, and what of it cannot be read. */
static dt_status print_data(const char *path, FILE *out)
{
    enum { MOST = 100 };
    const struct dt__h5_item *item;
    struct dt__h5_file *file;
    int shown = 0;
    DT_TRY(dt__h5_open(path, &file));
    fprintf(out, "%s: data\n", path);
    for (size_t i = 0; (item = dt__h5_item_at(file, i)) && shown < MOST; i++) {
        if (item->kind != DT__H5_ARRAY && item->kind != DT__H5_REFUSED) continue;
        fprintf(out, shown++ < MOST - 1 ? "  " : "  ... ");
        print_name(item->path, out);
        fprintf(out, "  (");
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

dt_status dt_inspect(const char *path, FILE *out)
{
    char *file, start[7] = "";
    DT_TRY(dt_model_find(path, false, &file, NULL));
    if (dt_path_is_dir(path)) fprintf(out, "%s\n", file);
    /* Whether the file says in its first bytes that it is one of this program's. Of one that cannot
     * be read, the reader says what is wrong. */
    int fd = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, start, sizeof start);
    if (fd >= 0) close(fd);
    bool ours = got < 0 || (got == sizeof start && !memcmp(start, "dtrain ", sizeof start));
    dt_status status = ours ? print_ours(file, out) : print_data(file, out);
    dt_free(file);
    return status;
}
