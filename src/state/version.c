#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dtrain/state.h"
#include "state/dir.h"
#include "state/export.h"
#include "state/folder.h"
#include "state/image.h"

#define MODEL_FILE "model.h5"

/* ---- names ---------------------------------------------------------------------------------- */

/* Whether a name is a version's number, just as it is written. */
static bool parse_version(const char *name, uint64_t *out)
{
    char again[32];
    unsigned long long number = strtoull(name, NULL, 10);
    snprintf(again, sizeof again, "%llu", number);
    if (strcmp(name, again)) return false;
    *out = number;
    return true;
}

/* A version that is being made or removed; nobody looks below such a name. */
#define HIDDEN ".tmp-"

static bool is_hidden(const char *name)
{
    return !strncmp(name, HIDDEN, strlen(HIDDEN));
}

static dt_status version_path(const char *base, const char *prefix, uint64_t step, char **out)
{
    return dt_format(out, "%s/%s%llu", base, prefix, (unsigned long long)step);
}

static dt_status fail_errno(const char *path, const char *doing)
{
    return dt_fail(DT_EIO, "%s: %s: %s", path, doing, strerror(errno));
}

/* ---- writing -------------------------------------------------------------------------------- */

static dt_status pack(const struct dt_export *from, struct dt__image *image)
{
    hid_t file = -1;
    struct dt_model *model;
    enum { SLACK = 1 << 21 };
    DT_TRY(dt_model_create(&from->spec, &model));
    dt_status status = dt__image_create(image, from->params_count * sizeof(float) + SLACK, &file);
    if (!status) status = dt__export_put(file, model, from);
    if (!status)
        status = dt__image_seal(image, file, DT__MODEL);
    else
        dt__image_close(file);
    dt_model_destroy(model);
    return status;
}

static dt_status fill_version(const char *dir, const struct dt__image *image)
{
    char *path;
    if (mkdir(dir, 0777)) return fail_errno(dir, "cannot make the directory");
    DT_TRY(dt_format(&path, "%s/" MODEL_FILE, dir));
    dt_status status = dt_file_write(path, image->bytes, image->length, dt__image_verify, NULL);
    dt_free(path);
    return status;
}

/* Puts `made` where `final` is by way of a third name; `final` is free for a moment. */
static dt_status replace(const char *final, const char *made, const char *aside)
{
    if (rename(final, aside)) return fail_errno(final, "cannot move aside");
    if (rename(made, final) == 0) return DT_OK;
    dt_status status = fail_errno(final, "cannot rename into place");
    if (rename(aside, final)) dt_warn("%s: now at %s: %s", final, aside, strerror(errno));
    return status;
}

/* Exchanges two directories at once, if the file system can. */
static dt_status swap(const char *final, const char *made)
{
    if (renameat2(AT_FDCWD, made, AT_FDCWD, final, RENAME_EXCHANGE) == 0) return DT_OK;
    char *aside;
    DT_TRY(dt_format(&aside, "%s-old", made));
    dt_status status = replace(final, made, aside);
    dt_free(aside);
    return status;
}

static dt_status place(const char *final, const char *made)
{
    if (rename(made, final) == 0) return DT_OK;
    if (errno == ENOTEMPTY || errno == EEXIST) return swap(final, made);
    return fail_errno(final, "cannot rename into place");
}

static dt_status make_version(const char *base, uint64_t step, const struct dt__image *image)
{
    char *made = NULL, *final = NULL;
    dt_status status;
    DT_GUARD(version_path(base, HIDDEN, step, &made));
    DT_GUARD(version_path(base, "", step, &final));
    DT_GUARD(fill_version(made, image));
    DT_GUARD(place(final, made));
    DT_GUARD(dt_dir_sync(base));
done:
    if (status && made) dt__path_remove(made);
    dt_free(final);
    dt_free(made);
    return status;
}

/* Hides a version before it is taken apart: who looks finds it whole or not at all. */
static dt_status hide_version(const char *base, uint64_t step)
{
    char *path = NULL, *hidden = NULL;
    dt_status status;
    DT_GUARD(version_path(base, "", step, &path));
    DT_GUARD(version_path(base, HIDDEN, step, &hidden));
    if (rename(path, hidden)) dt_warn("%s: cannot remove: %s", path, strerror(errno));
done:
    dt_free(hidden);
    dt_free(path);
    return status;
}

/* Versions after `step` are of a branch that was given up: the highest is to be the one just made. */
static dt_status hide_beyond(const char *base, const struct dt__numbers *versions, uint64_t step,
                             int64_t keep)
{
    int64_t kept = 0;
    for (size_t i = 0; i < versions->count; i++) {
        bool stays = versions->items[i] <= step && (keep <= 0 || kept++ < keep);
        if (!stays) DT_TRY(hide_version(base, versions->items[i]));
    }
    return DT_OK;
}

static dt_status retain(const char *base, uint64_t step, int64_t keep)
{
    struct dt__numbers versions;
    DT_TRY(dt__dir_numbers(base, parse_version, &versions));
    dt_status status = hide_beyond(base, &versions, step, keep);
    dt_free(versions.items);
    return status;
}

dt_status dt_export_write(const char *base, const struct dt_export *model, int64_t keep)
{
    struct dt__image image = {0};
    dt_status status;
    DT_GUARD(pack(model, &image));
    DT_GUARD(dt_dir_make(base));
    DT_GUARD(dt__dir_clear(base, is_hidden));
    DT_GUARD(make_version(base, model->step, &image));
    DT_GUARD(retain(base, model->step, keep));
    DT_GUARD(dt__dir_clear(base, is_hidden));
done:
    dt__image_free(&image);
    return status;
}

/* ---- loading -------------------------------------------------------------------------------- */

/* A model or a checkpoint, whose optimizer is left alone. */
static dt_status load_file(const char *path, struct dt_export *out)
{
    struct dt__image image;
    enum dt__image_kind kind;
    DT_TRY(dt__image_read(path, &image, &kind));
    dt_status status = dt__export_unpack(path, &image, out);
    dt__image_free(&image);
    return status;
}

/* DIR/name if it exists; *out NULL if not. */
static dt_status find_in(const char *dir, const char *name, char **out)
{
    char *path;
    DT_TRY(dt_format(&path, "%s/%s", dir, name));
    *out = dt_path_exists(path) ? path : NULL;
    if (!*out) dt_free(path);
    return DT_OK;
}

/* model.h5 of the highest version in `base`; NULL if there is none. */
static dt_status find_highest(const char *base, char **out)
{
    struct dt__numbers versions;
    DT_TRY(dt__dir_numbers(base, parse_version, &versions));
    dt_status status = DT_OK;
    *out = NULL;
    if (versions.count)
        status = dt_format(out, "%s/%llu/" MODEL_FILE, base, (unsigned long long)versions.items[0]);
    dt_free(versions.items);
    return status;
}

/* The model that a file or directory stands for; NULL if it may still be a run directory. */
static dt_status find_model(const char *path, char **out)
{
    if (!dt_path_is_dir(path)) return dt_strdup(path, out);
    DT_TRY(find_in(path, MODEL_FILE, out));
    return *out ? DT_OK : find_highest(path, out);
}

/* The newest good checkpoint of a directory, less what only a resume needs. */
static dt_status load_folder(const char *dir, struct dt_export *out, char **out_path,
                             bool *out_found)
{
    struct dt_checkpoint checkpoint;
    DT_TRY(dt_checkpoint_load_latest(dir, &checkpoint, out_path, out_found));
    if (!*out_found) return DT_OK;
    *out = dt_export_of(&checkpoint);
    checkpoint.params = NULL;
    checkpoint.config = NULL;
    checkpoint.schema = (struct dt_schema){0};
    dt_checkpoint_free(&checkpoint);
    return DT_OK;
}

/* A run directory, or its directory of checkpoints. */
static dt_status load_run(const char *path, struct dt_export *out, char **out_path)
{
    char *dir;
    bool found = false;
    DT_TRY(find_in(path, "ckpt", &dir));
    dt_status status = load_folder(dir ? dir : path, out, out_path, &found);
    dt_free(dir);
    if (!status && !found)
        status = dt_fail(DT_EIO, "%s: holds neither a model nor a checkpoint", path);
    return status;
}

dt_status dt_export_load(const char *path, struct dt_export *out, char **out_path)
{
    char *file;
    DT_TRY(find_model(path, &file));
    if (!file) return load_run(path, out, out_path);
    dt_status status = load_file(file, out);
    if (status)
        dt_free(file);
    else
        *out_path = file;
    return status;
}

static dt_status load_best(const char *base, uint64_t version, struct dt_best *out)
{
    char *path;
    struct dt_export model;
    DT_TRY(dt_format(&path, "%s/%llu/" MODEL_FILE, base, (unsigned long long)version));
    dt_status status = load_file(path, &model);
    dt_free(path);
    if (status) return status;
    *out = model.best;
    dt_export_free(&model);
    return DT_OK;
}

dt_status dt_export_best(const char *base, struct dt_best *out)
{
    struct dt__numbers versions;
    struct dt_best best = {0};
    DT_TRY(dt__dir_numbers(base, parse_version, &versions));
    for (size_t i = 0; i < versions.count && !best.known; i++)
        if (load_best(base, versions.items[i], &best)) dt_warn("passed over: %s", dt_error_text());
    dt_free(versions.items);
    *out = best;
    return DT_OK;
}
