#include "state/folder.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "dtrain/state.h"
#include "state/checkpoint.h"

/* ---- names ---------------------------------------------------------------------------------- */

const char *dt_checkpoint_name(uint64_t step, char name[DT_CHECKPOINT_NAME])
{
    snprintf(name, DT_CHECKPOINT_NAME, "step-%09llu.h5", (unsigned long long)step);
    return name;
}

static dt_status step_path(const char *dir, uint64_t step, char **out)
{
    char name[DT_CHECKPOINT_NAME];
    return dt_format(out, "%s/%s", dir, dt_checkpoint_name(step, name));
}

static const char *base_name(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* Whether a name is that of some step, just as it is written. */
static bool parse_name(const char *name, uint64_t *out)
{
    unsigned long long step;
    char again[DT_CHECKPOINT_NAME];
    if (sscanf(name, "step-%20llu.h5", &step) != 1) return false;
    if (strcmp(name, dt_checkpoint_name(step, again))) return false;
    *out = step;
    return true;
}

/* What a killed save leaves behind; see dt_file_write. */
static bool is_leftover(const char *name)
{
    return strstr(name, ".h5.tmp-") &&
           (!strncmp(name, "step-", 5) || !strncmp(name, DT__LATEST, strlen(DT__LATEST)));
}

/* Step that latest.h5 links to; a link to anything but a checkpoint beside it does not count. */
static bool read_latest(const char *dir, uint64_t *out)
{
    char *link, target[64];
    if (dt_format(&link, "%s/" DT__LATEST, dir)) return false;
    ssize_t length = readlink(link, target, sizeof target - 1);
    dt_free(link);
    if (length < 0) return false;
    target[length] = '\0';
    return parse_name(target, out);
}

/* ---- listing -------------------------------------------------------------------------------- */

static void move_to_front(struct dt__numbers *steps, uint64_t step)
{
    size_t at = 0;
    while (at < steps->count && steps->items[at] != step)
        at++;
    if (at == steps->count) return;
    memmove(steps->items + 1, steps->items, at * sizeof *steps->items);
    steps->items[0] = step;
}

dt_status dt__folder_list(const char *dir, struct dt__numbers *out)
{
    uint64_t latest;
    DT_TRY(dt__dir_numbers(dir, parse_name, out));
    if (read_latest(dir, &latest)) move_to_front(out, latest);
    return DT_OK;
}

/* ---- saving --------------------------------------------------------------------------------- */

static dt_status remove_step(const char *dir, uint64_t step, const char *spare)
{
    char *path;
    DT_TRY(step_path(dir, step, &path));
    bool spared = spare && !strcmp(base_name(path), spare);
    dt_status status = spared ? DT_OK : dt__path_remove(path);
    dt_free(path);
    return status;
}

/* Removes what is beyond `keep`. Steps after the one just saved, the list's first, are of a branch
 * that was given up (damaged, or left for an older checkpoint): they are the first to go. */
static dt_status retire(const char *dir, const struct dt__numbers *steps, size_t keep,
                        const char *spare)
{
    size_t later = 0;
    while (later + 1 < steps->count && steps->items[later + 1] > steps->items[0])
        later++;
    size_t earlier = steps->count - later; /* with the one just saved */
    for (size_t age = keep; age < steps->count; age++) {
        size_t i = age < earlier ? age + later : age - earlier + 1;
        DT_TRY(remove_step(dir, steps->items[i], spare));
    }
    return DT_OK;
}

dt_status dt__folder_retain(const char *dir, int64_t keep, const char *spare)
{
    struct dt__numbers steps;
    if (keep <= 0) return DT_OK;
    DT_TRY(dt__folder_list(dir, &steps));
    dt_status status = retire(dir, &steps, keep < 2 ? 2 : (size_t)keep, spare);
    dt_free(steps.items);
    return status;
}

static dt_status move_latest(const char *dir, const char *file)
{
    char *link;
    DT_TRY(dt_format(&link, "%s/" DT__LATEST, dir));
    dt_status status = dt_file_link(file, link);
    dt_free(link);
    return status;
}

/* Nobody reads the checkpoint before again, once there is a new one, and its page cache serves the new
 * one: memory that a virtual machine has to ask its host for takes 10 times as long to fill (measured). */
static void uncache_newest(const char *dir)
{
    uint64_t step;
    char *path;
    if (!dt_checkpoint_newest(dir, &step, &path)) return;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    dt_free(path);
    if (fd < 0) return;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* no more than a hint */
    close(fd);
}

dt_status dt__folder_write(const char *dir, const struct dt__image *image, uint64_t step,
                           char **out_file)
{
    char *path;
    dt_status status;
    DT_TRY(step_path(dir, step, &path));
    DT_GUARD(dt_dir_make(dir));
    DT_GUARD(dt__dir_clear(dir, is_leftover));
    uncache_newest(dir);
    DT_GUARD(dt_file_write(path, image->bytes, image->length, dt__image_verify, NULL));
    DT_GUARD(move_latest(dir, base_name(path)));
    DT_GUARD(dt_strdup(base_name(path), out_file));
done:
    dt_free(path);
    return status;
}

dt_status dt_checkpoint_save(const char *dir, const struct dt_checkpoint *checkpoint, int64_t keep,
                             const char *spare, char **out_file)
{
    char *file = NULL;
    struct dt__image image = {0};
    dt_status status = dt__checkpoint_pack(checkpoint, &image);
    if (!status) status = dt__folder_write(dir, &image, checkpoint->step, &file);
    dt__image_free(&image);
    if (!status) status = dt__folder_retain(dir, keep, spare);
    if (status)
        dt_free(file);
    else
        *out_file = file;
    return status;
}

/* ---- the newest ----------------------------------------------------------------------------- */

/* Loads a step. *out_passed: it is no good, the next one may be. */
static dt_status try_step(const char *dir, uint64_t step, struct dt_checkpoint *out,
                          char **out_path, bool *out_passed)
{
    char *path;
    DT_TRY(step_path(dir, step, &path));
    dt_status status = dt_checkpoint_load(path, out);
    *out_passed = status == DT_EFORMAT || status == DT_EIO;
    if (*out_passed) dt_warn("passed over: %s", dt_error_text());
    if (status)
        dt_free(path);
    else
        *out_path = path;
    return status;
}

static dt_status load_first_good(const char *dir, const struct dt__numbers *steps,
                                 struct dt_checkpoint *out, char **out_path)
{
    bool passed = true;
    dt_status status = DT_OK;
    for (size_t i = 0; passed && i < steps->count; i++)
        status = try_step(dir, steps->items[i], out, out_path, &passed);
    if (status && passed)
        return dt_fail(DT_EFORMAT, "%s: none of its %zu checkpoints is good", dir, steps->count);
    return status;
}

dt_status dt_checkpoint_load_latest(const char *dir, struct dt_checkpoint *out, char **out_path,
                                    bool *out_found)
{
    struct dt__numbers steps;
    DT_TRY(dt__folder_list(dir, &steps));
    dt_status status = load_first_good(dir, &steps, out, out_path);
    if (!status) *out_found = steps.count > 0;
    dt_free(steps.items);
    return status;
}

bool dt_checkpoint_newest(const char *dir, uint64_t *out_step, char **out_path)
{
    struct dt__numbers steps;
    if (dt__folder_list(dir, &steps)) return false;
    bool found = steps.count > 0 && !step_path(dir, steps.items[0], out_path);
    if (found) *out_step = steps.items[0];
    dt_free(steps.items);
    return found;
}
