/* Exported models: BASE/<step>/model.h5.
 *
 * A version is made under a hidden name and then renamed; to remove it, it is first renamed to a
 * hidden name. So readers find a version whole or not at all. Loading accepts any path that leads
 * to a model. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/internal.h"
#include "state/directory.h"

#define MODEL_FILE "model.h5"

/* ---- names ---------------------------------------------------------------------------------- */

/* Returns true if a name is exactly the number of a version. */
static bool parse_version(const char *name, uint64_t *out)
{
    char again[32];
    unsigned long long number = strtoull(name, NULL, 10);
    snprintf(again, sizeof again, "%llu", number);
    if (strcmp(name, again)) return false;
    *out = number;
    return true;
}

/* prefix of the name of a version that is being made or removed; readers skip such names */
#define HIDDEN ".tmp-"

static bool is_hidden(const char *name)
{
    return !strncmp(name, HIDDEN, strlen(HIDDEN));
}

static struct dt__path version_path(const char *base, const char *prefix, uint64_t step)
{
    return dt__path("%s/%s%llu", base, prefix, (unsigned long long)step);
}

static struct dt__path model_path(const char *base, uint64_t step)
{
    return dt__path("%s/%llu/" MODEL_FILE, base, (unsigned long long)step);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Renames the directory `made` to `final`. If `final` exists, exchanges the two atomically. If the
 * file system cannot do that, `final` is missing for a moment. */
static dt_status version_place(const char *final, const char *made)
{
    const struct dt__path aside = dt__path("%s-old", made);
    if (rename(made, final) == 0) return DT_OK;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return dt__fail_errno(final, "cannot rename into place");
    if (renameat2(AT_FDCWD, made, AT_FDCWD, final, RENAME_EXCHANGE) == 0) return DT_OK;
    if (rename(final, aside.text)) return dt__fail_errno(final, "cannot move aside");
    if (rename(made, final) == 0) return DT_OK;
    dt_status status = dt__fail_errno(final, "cannot rename into place");
    if (rename(aside.text, final))
        dt__warn("%s: cannot be moved back, and is now at %s: %s", final, aside.text,
                 strerror(errno));
    return status;
}

static dt_status version_make(const char *base, const struct dt_checkpoint *model)
{
    const struct dt__path made = version_path(base, HIDDEN, model->step),
                          final = version_path(base, "", model->step);
    if (mkdir(made.text, 0777)) return dt__fail_errno(made.text, "cannot make the directory");
    dt_status status = dt__file_save(dt__path("%s/" MODEL_FILE, made.text).text, model, false);
    if (!status) status = version_place(final.text, made.text);
    if (!status) status = dt__path_sync(base);
    if (status) dt__path_remove(made.text);
    return status;
}

/* Hides the versions that are to be removed: all but the `keep` newest up to `step`, and all after
 * `step`. Those belong to an abandoned branch, and the version just made must be the highest. */
static dt_status versions_hide(const char *base, uint64_t step, int64_t keep)
{
    struct dt__numbers versions;
    DT_TRY(dt__dir_numbers(base, parse_version, step, &versions));
    for (size_t i = 0; i < versions.count; i++) {
        const uint64_t version = versions.items[i];
        if (version <= step && (keep <= 0 || i < (uint64_t)keep)) continue;
        const struct dt__path path = version_path(base, "", version);
        if (rename(path.text, version_path(base, HIDDEN, version).text))
            dt__warn("%s: cannot remove: %s", path.text, strerror(errno));
    }
    dt_free(versions.items);
    return DT_OK;
}

dt_status dt__export_write(const char *base, const struct dt_checkpoint *model, int64_t keep)
{
    DT_TRY(dt__dir_make(base));
    DT_TRY(dt__dir_clear(base, is_hidden));
    DT_TRY(version_make(base, model));
    DT_TRY(versions_hide(base, model->step, keep));
    return dt__dir_clear(base, is_hidden);
}

/* ---- loading -------------------------------------------------------------------------------- */

/* Finds the model of the highest version below `base` that has one. If none has one, returns that
 * of the highest version, which may still be being copied. */
static dt_status highest_version(const char *base, struct dt__path *out)
{
    struct dt__numbers versions;
    DT_TRY(dt__dir_numbers(base, parse_version, UINT64_MAX, &versions));
    for (size_t i = 0; i < versions.count; i++) {
        const struct dt__path model = model_path(base, versions.items[i]);
        const bool exists = dt__path_exists(model.text);
        if (i == 0 || exists) *out = model;
        if (exists) break;
    }
    dt_free(versions.items);
    return DT_OK;
}

bool dt__export_exists(const char *base)
{
    struct dt__path model = {""};
    return dt__path_is_dir(base) && !highest_version(base, &model) && dt__path_exists(model.text);
}

static dt_status fail_nothing(const char *path)
{
    return dt_fail(DT_EIO, "%s: holds neither a model nor a checkpoint", path);
}

dt_status dt__model_find(const char *path, bool best, char **out_file, char **out_ckpt)
{
    if (dt__path_exists(dt__path("%s/search.jsonl", path).text))
        best = true; /* a search has no
                                                                               * other model */
    const struct dt__path exports = dt__path("%s/export/best", path),
                          model = dt__path("%s/" MODEL_FILE, path);
    struct dt__path file = {""}, ckpt = dt__path("%s/ckpt", path);
    uint64_t step;
    if (out_ckpt) *out_ckpt = NULL;
    if (!dt__path_is_dir(path)) return dt__strdup(path, out_file);
    if (best && dt__path_is_dir(exports.text)) DT_TRY(highest_version(exports.text, &file));
    if (!*file.text && dt__path_exists(model.text)) file = model;
    if (!*file.text) DT_TRY(highest_version(path, &file));
    if (*file.text) return dt__strdup(file.text, out_file);
    if (!dt__path_exists(ckpt.text)) ckpt = dt__path("%s", path);
    if (!dt__checkpoint_newest(ckpt.text, &step)) return fail_nothing(path);
    DT_TRY(dt__strdup(dt__step_path(ckpt.text, step).text, out_file));
    dt_status status = out_ckpt ? dt__strdup(ckpt.text, out_ckpt) : DT_OK;
    if (status) dt_free(*out_file);
    return status;
}

/* Loads what a path means. Sets *out_gone if it fails because the file that was found no longer
 * exists. */
static dt_status model_load(const char *path, bool best, struct dt_checkpoint *out, char **out_path,
                            bool *out_gone)
{
    char *file, *ckpt;
    bool found = true;
    *out_gone = false;
    DT_TRY(dt__model_find(path, best, &file, &ckpt));
    dt_status status = ckpt
                           ? dt__checkpoint_load_latest(ckpt, DT__WANT_MODEL, out, out_path, &found)
                           : dt__file_load(file, DT__WANT_MODEL, out, NULL);
    *out_gone = status && !ckpt && !dt__path_exists(file);
    if (!found) status = fail_nothing(path);
    if (!status && !ckpt) {
        *out_path = file;
        file = NULL;
    }
    dt_free(file);
    dt_free(ckpt);
    return status;
}

dt_status dt__export_load(const char *path, bool best, struct dt_checkpoint *out, char **out_path)
{
    bool gone;
    dt_status status = model_load(path, best, out, out_path, &gone);
    /* A newer version may replace this one between finding and loading it; with export.keep=1 this
     * is likely. */
    if (gone && dt__path_is_dir(path)) status = model_load(path, best, out, out_path, &gone);
    return status;
}

dt_status dt__export_best(const char *base, struct dt_best *out)
{
    struct dt__numbers versions;
    struct dt_best best = {0};
    DT_TRY(dt__dir_numbers(base, parse_version, UINT64_MAX, &versions));
    for (size_t i = 0; i < versions.count && !best.known; i++) {
        struct dt_checkpoint model;
        const struct dt__path path = model_path(base, versions.items[i]);
        if (dt__file_load(path.text, DT__WANT_RECORDS, &model, NULL)) {
            dt__warn("passed over: %s", dt_error_text());
        } else {
            best = model.best;
            dt__checkpoint_free(&model);
        }
    }
    dt_free(versions.items);
    *out = best;
    return DT_OK;
}
