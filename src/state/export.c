/* Exported models: BASE/<step>/model.h5.
 *
 * A version is made under a hidden name and renamed; one that goes is hidden before it is taken
 * apart: who looks finds it whole or not at all. Loading takes whatever path leads to a model. */
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

static dt_status model_path(const char *base, uint64_t step, char **out)
{
    return dt_format(out, "%s/%llu/" MODEL_FILE, base, (unsigned long long)step);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Puts the directory `made` where `final` is or shall be: two directories are exchanged at once, if
 * the file system can; else `final` is free for a moment. */
static dt_status version_place(const char *final, const char *made)
{
    char *aside = NULL;
    if (rename(made, final) == 0) return DT_OK;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return dt__fail_errno(final, "cannot rename into place");
    if (renameat2(AT_FDCWD, made, AT_FDCWD, final, RENAME_EXCHANGE) == 0) return DT_OK;
    DT_TRY(dt_format(&aside, "%s-old", made));
    dt_status status = DT_OK;
    if (rename(final, aside)) {
        status = dt__fail_errno(final, "cannot move aside");
    } else if (rename(made, final)) {
        status = dt__fail_errno(final, "cannot rename into place");
        if (rename(aside, final)) dt_warn("%s: now at %s: %s", final, aside, strerror(errno));
    }
    dt_free(aside);
    return status;
}

static dt_status version_make(const char *base, const struct dt_checkpoint *model)
{
    char *made = NULL, *final = NULL, *file = NULL;
    dt_status status;
    DT_GUARD(version_path(base, HIDDEN, model->step, &made));
    DT_GUARD(version_path(base, "", model->step, &final));
    DT_GUARD(dt_format(&file, "%s/" MODEL_FILE, made));
    DT_GUARD(mkdir(made, 0777) ? dt__fail_errno(made, "cannot make the directory") : DT_OK);
    DT_GUARD(dt__file_save(file, model, false));
    DT_GUARD(version_place(final, made));
    DT_GUARD(dt_dir_sync(base));
done:
    if (status && made) dt__path_remove(made);
    dt_free(file);
    dt_free(final);
    dt_free(made);
    return status;
}

/* Hides the versions that go. Those after `step` are of a branch that was given up: the highest is
 * to be the one just made. */
static dt_status versions_hide(const char *base, uint64_t step, int64_t keep)
{
    struct dt__numbers versions;
    int64_t kept = 0;
    DT_TRY(dt__dir_numbers(base, parse_version, &versions));
    dt_status status = DT_OK;
    for (size_t i = 0; i < versions.count && !status; i++) {
        char *path = NULL, *hidden = NULL;
        uint64_t version = versions.items[i];
        if (version <= step && (keep <= 0 || kept++ < keep)) continue;
        status = version_path(base, "", version, &path);
        if (!status) status = version_path(base, HIDDEN, version, &hidden);
        if (!status && rename(path, hidden))
            dt_warn("%s: cannot remove: %s", path, strerror(errno));
        dt_free(hidden);
        dt_free(path);
    }
    dt_free(versions.items);
    return status;
}

dt_status dt_export_write(const char *base, const struct dt_checkpoint *model, int64_t keep)
{
    DT_TRY(dt_dir_make(base));
    DT_TRY(dt__dir_clear(base, is_hidden));
    DT_TRY(version_make(base, model));
    DT_TRY(versions_hide(base, model->step, keep));
    return dt__dir_clear(base, is_hidden);
}

/* ---- loading -------------------------------------------------------------------------------- */

/* DIR/NAME, if it is there; else NULL. */
static dt_status path_below(const char *dir, const char *name, char **out)
{
    DT_TRY(dt_format(out, "%s/%s", dir, name));
    if (dt_path_exists(*out)) return DT_OK;
    dt_free(*out);
    *out = NULL;
    return DT_OK;
}

/* The model of the highest version below `base`, if there is one; else NULL. */
static dt_status highest_version(const char *base, char **out)
{
    struct dt__numbers versions;
    DT_TRY(dt__dir_numbers(base, parse_version, &versions));
    dt_status status = versions.count ? model_path(base, versions.items[0], out) : DT_OK;
    dt_free(versions.items);
    return status;
}

static dt_status fail_nothing(const char *path)
{
    return dt_fail(DT_EIO, "%s: holds neither a model nor a checkpoint", path);
}

dt_status dt_model_find(const char *path, bool best, char **out_file, char **out_ckpt)
{
    char *exports = NULL, *ckpt = NULL, *file = NULL;
    uint64_t step;
    dt_status status;
    if (out_ckpt) *out_ckpt = NULL;
    if (!dt_path_is_dir(path)) return dt_strdup(path, out_file);
    DT_GUARD(dt_format(&exports, "%s/export/best", path));
    if (best && dt_path_is_dir(exports)) DT_GUARD(highest_version(exports, &file));
    if (!file) DT_GUARD(path_below(path, MODEL_FILE, &file));
    if (!file) DT_GUARD(highest_version(path, &file));
    if (!file) {
        DT_GUARD(path_below(path, "ckpt", &ckpt));
        if (!ckpt) DT_GUARD(dt_strdup(path, &ckpt));
        if (!dt_checkpoint_newest(ckpt, &step, &file)) DT_GUARD(fail_nothing(path));
        if (out_ckpt) {
            *out_ckpt = ckpt;
            ckpt = NULL;
        }
    }
    *out_file = file;
done:
    dt_free(exports);
    dt_free(ckpt);
    return status;
}

dt_status dt_export_load(const char *path, struct dt_checkpoint *out, char **out_path)
{
    char *file, *ckpt;
    bool found = true;
    DT_TRY(dt_model_find(path, false, &file, &ckpt));
    dt_status status = ckpt
                           ? dt__checkpoint_load_latest(ckpt, DT__WANT_MODEL, out, out_path, &found)
                           : dt__file_load(file, DT__WANT_MODEL, out, NULL);
    if (!found) status = fail_nothing(path);
    if (!status && !ckpt) {
        *out_path = file;
        file = NULL;
    }
    dt_free(file);
    dt_free(ckpt);
    return status;
}

dt_status dt_export_best(const char *base, struct dt_best *out)
{
    struct dt__numbers versions;
    struct dt_best best = {0};
    DT_TRY(dt__dir_numbers(base, parse_version, &versions));
    dt_status status = DT_OK;
    for (size_t i = 0; i < versions.count && !best.known && !status; i++) {
        char *path;
        struct dt_checkpoint model;
        if ((status = model_path(base, versions.items[i], &path)) != DT_OK) break;
        if (dt__file_load(path, DT__WANT_MODEL, &model, NULL)) {
            dt_warn("passed over: %s", dt_error_text());
        } else {
            best = model.best;
            dt_checkpoint_free(&model);
        }
        dt_free(path);
    }
    dt_free(versions.items);
    if (!status) *out = best;
    return status;
}
