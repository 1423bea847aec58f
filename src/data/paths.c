/* Lists of files and globs. */
#include "data/paths.h"

#include <glob.h>
#include <string.h>

static dt_status expand(const char *key, const char *pattern, struct dt__names *out)
{
    glob_t matches;
    int code = glob(pattern, GLOB_NOSORT, NULL, &matches);
    if (code == GLOB_NOMATCH) return dt_fail(DT_EIO, "%s: no file matches '%s'", key, pattern);
    if (code) return dt_fail(DT_EIO, "%s: cannot expand '%s'", key, pattern);
    dt_status status = DT_OK;
    dt__names_sort(matches.gl_pathv, matches.gl_pathc);
    for (size_t i = 0; i < matches.gl_pathc && !status; i++)
        status = dt__names_add(out, matches.gl_pathv[i], strlen(matches.gl_pathv[i]));
    globfree(&matches);
    return status;
}

/* A file that is there is meant, whatever characters its name has. */
dt_status dt__paths_expand(const char *key, const char *list, struct dt__names *out)
{
    struct dt__names parts = {0};
    dt_status status = dt__names_split(list, &parts);
    for (size_t i = 0; i < parts.count && !status; i++) {
        const char *part = parts.items[i];
        if (strpbrk(part, "*?[") && !dt_path_exists(part))
            status = expand(key, part, out);
        else
            status = dt__names_add(out, part, strlen(part));
    }
    dt__names_free(parts.items, parts.count);
    return status;
}
