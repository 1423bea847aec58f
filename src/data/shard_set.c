/* Sets of shards, and the check that they are complete. */
#include "data/shard_set.h"

#include <stdio.h>
#include <string.h>

/* A set of shards, such as DIRECTORY/shard-00001-of-00004.h5. */
struct set {
    const char *directory; /* (length) bytes of a path: its directory, with the slash */
    int length, all, read;
};

/* Counts a file in its set. The first file of a set appends the set to `sets`; a file that is not a
 * shard is skipped. */
static dt_status set_count(const char *path, struct set **sets, size_t *count, size_t *capacity)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct set set = {.directory = path, .length = (int)(name - path)};
    size_t i = 0;
    int end = 0;
    if (sscanf(name, "shard-%*5d-of-%5d.h5%n", &set.all, &end) != 1 || !end || name[end])
        return DT_OK;
    while (i < *count && ((*sets)[i].all != set.all || (*sets)[i].length != set.length ||
                          memcmp((*sets)[i].directory, path, (size_t)set.length) != 0))
        i++;
    if (i == *count) {
        DT_TRY(dt__grow(sets, capacity, i + 1, sizeof set, "shards"));
        (*sets)[(*count)++] = set;
    }
    (*sets)[i].read++;
    return DT_OK;
}

static dt_status set_check(const struct set *set, const char *key)
{
    char *path;
    dt_status status = DT_OK;
    int there = 0;
    for (int s = 0; set->read < set->all && s < set->all && !status; s++) {
        DT_TRY(dt__format(&path, "%.*sshard-%05d-of-%05d.h5" DT__SHARD_PART, set->length,
                          set->directory, s, set->all));
        if (dt__path_exists(path))
            status =
                dt_fail(DT_EIO,
                        "%s: %s: dtrain shard was killed or is still running: the set of shards "
                        "is not complete",
                        key, path);
        path[strlen(path) - strlen(DT__SHARD_PART)] = '\0';
        there += dt__path_exists(path);
        dt_free(path);
    }
    if (set->read < set->all && !status)
        dt__warn("%s: %.*sshard-*-of-%05d.h5: %d of the set of %d shards are read, and %d exist",
                 key, set->length, set->directory, set->all, set->read, set->all, there);
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
