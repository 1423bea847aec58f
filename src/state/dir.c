#include "state/dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- listing -------------------------------------------------------------------------------- */

typedef dt_status visit_fn(void *arg, const char *dir, const char *name);

static dt_status fail_list(const char *dir)
{
    return dt_fail(DT_EIO, "%s: cannot list: %s", dir, strerror(errno));
}

static bool is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

static dt_status each_name(const char *dir, visit_fn *visit, void *arg)
{
    DIR *stream = opendir(dir);
    if (!stream) return errno == ENOENT ? DT_OK : fail_list(dir);
    dt_status status = DT_OK;
    struct dirent *entry;
    while (!status && (errno = 0, entry = readdir(stream)))
        if (!is_dots(entry->d_name)) status = visit(arg, dir, entry->d_name);
    if (!status && errno) status = fail_list(dir);
    closedir(stream);
    return status;
}

/* ---- numbers -------------------------------------------------------------------------------- */

struct collection {
    dt__number_fn *parse;
    struct dt__numbers numbers;
};

static dt_status collect(void *arg, const char *dir, const char *name)
{
    (void)dir;
    struct collection *collection = arg;
    struct dt__numbers *numbers = &collection->numbers;
    uint64_t number;
    if (!collection->parse(name, &number)) return DT_OK;
    DT_TRY(
        dt_grow(&numbers->items, &numbers->capacity, numbers->count + 1, sizeof number, "a list"));
    numbers->items[numbers->count++] = number;
    return DT_OK;
}

static int falling(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

dt_status dt__dir_numbers(const char *dir, dt__number_fn *parse, struct dt__numbers *out)
{
    struct collection collection = {.parse = parse};
    dt_status status = each_name(dir, collect, &collection);
    struct dt__numbers numbers = collection.numbers;
    if (status) {
        dt_free(numbers.items);
        return status;
    }
    if (numbers.count) qsort(numbers.items, numbers.count, sizeof *numbers.items, falling);
    *out = numbers;
    return DT_OK;
}

/* ---- removing ------------------------------------------------------------------------------- */

static dt_status remove_inside(void *arg, const char *dir, const char *name)
{
    (void)arg;
    char *path;
    DT_TRY(dt_format(&path, "%s/%s", dir, name));
    if (unlink(path) && errno != ENOENT) dt_warn("%s: cannot remove: %s", path, strerror(errno));
    dt_free(path);
    return DT_OK;
}

dt_status dt__path_remove(const char *path)
{
    if (unlink(path) == 0 || errno == ENOENT) return DT_OK;
    int error = errno;
    if (!dt_path_is_dir(path)) {
        dt_warn("%s: cannot remove: %s", path, strerror(error));
        return DT_OK;
    }
    DT_TRY(each_name(path, remove_inside, NULL));
    if (rmdir(path)) dt_warn("%s: cannot remove: %s", path, strerror(errno));
    return DT_OK;
}

static dt_status remove_wanted(void *arg, const char *dir, const char *name)
{
    char *path;
    bool (*const *wanted)(const char *) = arg;
    if (!(*wanted)(name)) return DT_OK;
    DT_TRY(dt_format(&path, "%s/%s", dir, name));
    dt_status status = dt__path_remove(path);
    dt_free(path);
    return status;
}

dt_status dt__dir_clear(const char *dir, bool (*wanted)(const char *name))
{
    return each_name(dir, remove_wanted, &wanted);
}
