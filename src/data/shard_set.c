/* Sets of shards, and the check that they are complete. */
#include "data/shard_set.h"

#include <stdio.h>
#include <string.h>

/* A set of shards: the files DIRECTORY/shard-*-of-TOTAL.h5 of one directory with the same total. */
struct set {
    const char *directory; /* with the slash; not terminated, `length` bytes long; borrowed */
    int length;
    int total;  /* number of shards in the set, according to the names */
    int listed; /* number of them that data.train or data.eval lists */
};

/* Counts a listed file in the set that it belongs to, and appends that set to `sets` if it is not
 * there yet. Ignores a file that is not named like a shard. */
static dt_status set_count(const char *path, struct set **sets, size_t *count, size_t *capacity)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct set set = {.directory = path, .length = (int)(name - path)};
    size_t i = 0;
    int end = 0;
    if (sscanf(name, "shard-%*5d-of-%5d.h5%n", &set.total, &end) != 1 || !end || name[end])
        return DT_OK;
    while (i < *count && ((*sets)[i].total != set.total || (*sets)[i].length != set.length ||
                          memcmp((*sets)[i].directory, path, (size_t)set.length) != 0))
        i++;
    if (i == *count) {
        DT_TRY(dt__grow(sets, capacity, i + 1, sizeof set, "shards"));
        (*sets)[(*count)++] = set;
    }
    (*sets)[i].listed++;
    return DT_OK;
}

/* Checks that all shards of a set are listed; warns if not. Fails with DT_EIO if a shard has a
 * partial name. `key` is for the messages. */
static dt_status set_check(const struct set *set, const char *key)
{
    char *path;
    dt_status status = DT_OK;
    int existing = 0;
    for (int s = 0; set->listed < set->total && s < set->total && !status; s++) {
        DT_TRY(dt__format(&path, "%.*sshard-%05d-of-%05d.h5" DT__SHARD_PART, set->length,
                          set->directory, s, set->total));
        if (dt__path_exists(path))
            status =
                dt_fail(DT_EIO,
                        "%s: %s: the set of shards is incomplete: dtrain shard was killed or is "
                        "still running",
                        key, path);
        path[strlen(path) - strlen(DT__SHARD_PART)] = '\0';
        existing += dt__path_exists(path);
        dt_free(path);
    }
    if (set->listed < set->total && !status)
        dt__warn("%s: %.*sshard-*-of-%05d.h5: reading only %d of %d shards (%d exist)", key,
                 set->length, set->directory, set->total, set->listed, set->total, existing);
    return status;
}

dt_status dt__shards_check(const struct dt__names lists[2], bool eval)
{
    struct set *sets = NULL;
    size_t count = 0, capacity = 0, ends[2];
    dt_status status = DT_OK;
    for (int l = 0; l < 2; l++) {
        for (size_t i = 0; i < lists[l].count; i++)
            DT_GUARD(set_count(lists[l].items[i], &sets, &count, &capacity));
        ends[l] = count;
    }
    for (size_t i = eval ? ends[0] : 0; i < ends[eval]; i++)
        DT_GUARD(set_check(&sets[i], eval ? "data.eval" : "data.train"));
done:
    dt_free(sets);
    return status;
}
