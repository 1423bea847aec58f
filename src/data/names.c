/* Lists of names, an index to search them by, and lists of files. */
#include "data/names.h"

#include <ctype.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

void dt__names_free(char **names, size_t count)
{
    for (size_t i = 0; names && i < count; i++)
        dt_free(names[i]);
    dt_free(names);
}

dt_status dt__names_add(struct dt__names *list, const char *text, size_t length)
{
    char *copy;
    DT_TRY(dt_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items, "names"));
    DT_TRY(dt_alloc(length + 1, 1, "name", &copy));
    memcpy(copy, text, length);
    list->items[list->count++] = copy;
    return DT_OK;
}

static int order_by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void dt__names_sort(char **names, size_t count)
{
    if (count) qsort(names, count, sizeof *names, order_by_bytes);
}

void dt__text_trim(const char **text, size_t *length)
{
    for (; *length && isblank((unsigned char)**text); ++*text)
        --*length;
    while (*length && isblank((unsigned char)(*text)[*length - 1]))
        --*length;
}

dt_status dt__names_split(const char *text, struct dt__names *out)
{
    while (*text) {
        size_t length = strcspn(text, ","), next = length + (text[length] == ',');
        const char *part = text;
        while (length && isspace((unsigned char)*part))
            part++, length--;
        while (length && isspace((unsigned char)part[length - 1]))
            length--;
        if (length) DT_TRY(dt__names_add(out, part, length));
        text += next;
    }
    return DT_OK;
}

/* ---- dictionaries ---------------------------------------------------------------------------- */

void dt__dict_free(struct dt__dict *dict)
{
    dt_free(dict->bytes);
    dt_free(dict->entries);
    dt_free(dict->slots);
    *dict = (struct dt__dict){0};
}

/* FNV-1a, and its bits mixed. */
uint64_t dt__text_hash(const char *text, size_t length, uint64_t seed)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

_Static_assert((DT__DICT_SLOTS & (DT__DICT_SLOTS - 1)) == 0 && DT__DICT_SLOTS > 1,
               "a hash is masked; a slot stays free");

/* The slot of a text, or the empty one where it belongs. */
static size_t dict_slot(const struct dt__dict *dict, const char *text, size_t length)
{
    size_t slot = dt__text_hash(text, length, 0) & (dict->nslots - 1);
    for (uint32_t number; (number = dict->slots[slot]); slot = (slot + 1) & (dict->nslots - 1)) {
        const struct dt__dict_entry *entry = &dict->entries[number - 1];
        if (entry->length == length && !memcmp(dict->bytes + entry->at, text, length)) break;
    }
    return slot;
}

dt_status dt__dict_add(struct dt__dict *dict, const char *text, size_t length, uint32_t *out)
{
    if (2 * (dict->count + 1) > dict->nslots) { /* at most half of the slots are used */
        const size_t nslots = dict->nslots ? 2 * dict->nslots : DT__DICT_SLOTS;
        uint32_t *slots;
        DT_TRY(dt_alloc(nslots, sizeof *slots, "dictionary", &slots));
        dt_free(dict->slots);
        dict->slots = slots;
        dict->nslots = nslots;
        for (size_t i = 0; i < dict->count; i++) {
            const struct dt__dict_entry *entry = &dict->entries[i];
            slots[dict_slot(dict, dict->bytes + entry->at, entry->length)] = (uint32_t)i + 1;
        }
    }
    size_t slot = dict_slot(dict, text, length);
    if (!dict->slots[slot]) {
        if (dict->count == UINT32_MAX - 1) return dt_fail(DT_EFORMAT, "too many distinct texts");
        DT_TRY(dt_grow(&dict->entries, &dict->entries_room, dict->count + 1, sizeof *dict->entries,
                       "dictionary"));
        DT_TRY(
            dt_grow(&dict->bytes, &dict->bytes_room, dict->length + length + 1, 1, "dictionary"));
        memcpy(dict->bytes + dict->length, text, length);
        dict->bytes[dict->length + length] = 0;
        dict->entries[dict->count] = (struct dt__dict_entry){dict->length, length, 0};
        dict->length += length + 1;
        dict->slots[slot] = (uint32_t)++dict->count;
    }
    *out = dict->slots[slot] - 1;
    dict->entries[*out].count++;
    return DT_OK;
}

dt_status dt__dict_add_names(struct dt__dict *dict, char *const *names, size_t count)
{
    uint32_t number;
    for (size_t i = 0; names && i < count; i++)
        DT_TRY(dt__dict_add(dict, names[i], strlen(names[i]), &number));
    return DT_OK;
}

bool dt__dict_find(const struct dt__dict *dict, const char *text, size_t length, uint32_t *out)
{
    uint32_t number = dict->count ? dict->slots[dict_slot(dict, text, length)] : 0;
    if (number) *out = number - 1;
    return number != 0;
}

bool dt__dict_find_blank(const struct dt__dict *dict, const char *text, size_t length,
                         uint32_t *out)
{
    char led[256] = " ";
    if (dt__dict_find(dict, text, length, out)) return true;
    dt__text_trim(&text, &length);
    if (dt__dict_find(dict, text, length, out)) return true;
    if (length + 1 > sizeof led) return false;
    memcpy(led + 1, text, length);
    return dt__dict_find(dict, led, length + 1, out);
}

const char *dt__dict_text(const struct dt__dict *dict, size_t number)
{
    return dict->bytes + dict->entries[number].at;
}

/* ---- lists of files -------------------------------------------------------------------------- */

/* A file that is there is meant, whatever characters its name has. */
dt_status dt__paths_expand(const char *key, const char *list, struct dt__names *out)
{
    struct dt__names parts = {0};
    dt_status status = dt__names_split(list, &parts);
    for (size_t i = 0; i < parts.count && !status; i++) {
        const char *part = parts.items[i];
        glob_t matches;
        if (!strpbrk(part, "*?[") || dt_path_exists(part)) {
            status = dt__names_add(out, part, strlen(part));
            continue;
        }
        int code = glob(part, GLOB_NOSORT, NULL, &matches);
        if (code) {
            status = dt_fail(DT_EIO,
                             code == GLOB_NOMATCH ? "%s: no file matches '%s'"
                                                  : "%s: cannot expand '%s'",
                             key, part);
            break;
        }
        dt__names_sort(matches.gl_pathv, matches.gl_pathc);
        for (size_t m = 0; m < matches.gl_pathc && !status; m++)
            status = dt__names_add(out, matches.gl_pathv[m], strlen(matches.gl_pathv[m]));
        globfree(&matches);
    }
    dt__names_free(parts.items, parts.count);
    return status;
}
