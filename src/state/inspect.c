#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "data/h5.h"
#include "dtrain/state.h"
#include "state/checkpoint.h"
#include "state/export.h"

/* ---- what checkpoints and models share ------------------------------------------------------ */

static void print_layers(const struct dt_model *model, FILE *out)
{
    for (int i = 0; i < dt_model_layers(model); i++) {
        const struct dt_layer *layer = dt_model_layer(model, i);
        fprintf(out, "  layer %d     weight (%d, %d), bias (%d)\n", i, layer->nin, layer->nout,
                layer->nout);
    }
}

static dt_status print_network(const struct dt_export *from, FILE *out)
{
    char text[256], task[16];
    struct dt_model *model;
    DT_TRY(dt_model_create(&from->spec, &model));
    uint32_t crc = dt_crc32c(0, from->params, from->params_count * sizeof(float));
    fprintf(out, "network       %s, %s\n", dt_model_describe(model, text, sizeof text),
            dt_config_word(DT_TASK_WORDS, from->spec.task, task));
    fprintf(out, "parameters    %" PRIu64 ", params_crc32c %08" PRIx32 "\n", from->params_count,
            crc);
    print_layers(model, out);
    dt_model_destroy(model);
    return DT_OK;
}

/* Names come from a file: no control character reaches a terminal. */
static void print_name(const char *name, FILE *out)
{
    for (; *name; name++)
        fputc((unsigned char)*name < ' ' || *name == 127 ? '?' : *name, out);
}

static void print_labels(const struct dt_schema *schema, FILE *out)
{
    enum { MOST = 10 };
    for (int i = 0; i < schema->classes && i < MOST; i++) {
        fprintf(out, "%s", i ? ", " : " (");
        print_name(schema->label_names[i], out);
    }
    fprintf(out, "%s)", schema->classes > MOST ? ", ..." : "");
}

static void print_schema(const struct dt_schema *schema, FILE *out)
{
    fprintf(out, "features      %d, scale %g%s%s\n", schema->features, schema->scale,
            schema->mean ? ", normalised" : "", schema->feature_names ? ", named" : "");
    if (schema->task == DT_REGRESS) {
        fprintf(out, "targets       %d\n", schema->targets);
        return;
    }
    fprintf(out, "classes       %d", schema->classes);
    if (schema->label_names) print_labels(schema, out);
    fprintf(out, "\n");
}

static dt_status print_export(const struct dt_export *from, FILE *out)
{
    fprintf(out, "step          %" PRIu64 "\n", from->step);
    DT_TRY(print_network(from, out));
    print_schema(&from->schema, out);
    if (!from->best.known) return DT_OK;
    fprintf(out, "best          ");
    print_name(from->best.metric, out);
    fprintf(out, " %g at step %" PRIu64 "\n", from->best.value, from->best.step);
    return DT_OK;
}

/* ---- the three kinds of file ---------------------------------------------------------------- */

static void print_run(const struct dt_checkpoint *from, FILE *out)
{
    char mode[16];
    fprintf(out, "mode          %s, %d replicas, seed %" PRIu64 "\n",
            dt_config_word(DT_MODE_WORDS, from->mode, mode), from->replicas, from->seed);
    fprintf(out, "optimizer    ");
    for (int i = 0; i < from->nstate; i++)
        fprintf(out, " %s", from->state_name[i]);
    fprintf(out, "%s\n", from->nstate ? "" : " without state");
    fprintf(out, "trained       %" PRIu64 " samples in %.1f s, kernel ", from->samples,
            from->wall_secs);
    print_name(from->kernel, out);
    fprintf(out, "\n");
}

static dt_status print_checkpoint(const char *path, const struct dt__image *image, FILE *out)
{
    struct dt_checkpoint checkpoint;
    DT_TRY(dt__checkpoint_unpack(path, image, &checkpoint));
    struct dt_export shared = dt_export_of(&checkpoint);
    dt_status status = print_export(&shared, out);
    if (!status) print_run(&checkpoint, out);
    dt_checkpoint_free(&checkpoint);
    return status;
}

static dt_status print_model(const char *path, const struct dt__image *image, FILE *out)
{
    struct dt_export model;
    DT_TRY(dt__export_unpack(path, image, &model));
    dt_status status = print_export(&model, out);
    dt_export_free(&model);
    return status;
}

static dt_status print_ours(const char *path, FILE *out)
{
    struct dt__image image;
    enum dt__image_kind kind;
    DT_TRY(dt__image_read(path, &image, &kind));
    fprintf(out, "%s: %s of %zu bytes, checksum right\n", path, dt__image_kind_word(kind),
            image.length);
    dt_status status = kind == DT__CHECKPOINT ? print_checkpoint(path, &image, out)
                                              : print_model(path, &image, out);
    dt__image_free(&image);
    return status;
}

static dt_status print_dataset(hid_t file, const char *name, FILE *out)
{
    struct dt__h5_dataset dataset;
    DT_TRY(dt__h5_dataset_open(file, name, &dataset));
    H5T_class_t class = H5Tget_class(dataset.type);
    fprintf(out, "  %s  (", name);
    for (int i = 0; i < dataset.rank; i++)
        fprintf(out, "%s%llu", i ? ", " : "", (unsigned long long)dataset.dims[i]);
    fprintf(out, ") %s of %zu bits\n",
            class == H5T_FLOAT     ? "floats"
            : class == H5T_INTEGER ? "integers"
                                   : "texts",
            H5Tget_size(dataset.type) * 8);
    dt__h5_dataset_close(&dataset);
    return DT_OK;
}

static dt_status print_shard(const char *path, FILE *out)
{
    hid_t file;
    DT_TRY(dt__h5_file_open(path, &file));
    fprintf(out, "%s: data\n", path);
    dt_status status = print_dataset(file, "/x", out);
    if (!status) status = print_dataset(file, "/y", out);
    H5Fclose(file);
    return status ? dt_fail_prefix(status, "%s: ", path) : DT_OK;
}

/* Whether the file says in its first bytes that it is one of this program's. */
static bool is_ours(const char *path)
{
    char start[7] = "";
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return true; /* the reader says what is wrong */
    ssize_t got = read(fd, start, sizeof start);
    close(fd);
    return got == sizeof start && !memcmp(start, "dtrain ", sizeof start);
}

dt_status dt_inspect(const char *path, FILE *out)
{
    return is_ours(path) ? print_ours(path, out) : print_shard(path, out);
}
