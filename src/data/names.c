/* Lists of names. */
#include "data/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void dt__names_free(char **names, size_t count)
{
    for (size_t i = 0; names && i < count; i++)
        dt_free(names[i]);
    dt_free(names);
}

dt_status dt__names_copy(char *const *names, size_t count, char ***out)
{
    struct dt__names copy = {0};
    *out = NULL;
    for (size_t i = 0; names && i < count; i++) {
        dt_status status = dt__names_add(&copy, names[i], strlen(names[i]));
        if (status) {
            dt__names_free(copy.items, copy.count);
            return status;
        }
    }
    *out = copy.items;
    return DT_OK;
}

bool dt__names_equal(char *const *a, char *const *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(a[i], b[i])) return false;
    return true;
}

dt_status dt__names_insert(struct dt__names *list, size_t at, const char *text, size_t length)
{
    char *copy;
    DT_TRY(dt_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items, "names"));
    DT_TRY(dt_alloc(length + 1, 1, "name", &copy));
    memcpy(copy, text, length);
    memmove(list->items + at + 1, list->items + at, (list->count - at) * sizeof *list->items);
    list->items[at] = copy;
    list->count++;
    return DT_OK;
}

dt_status dt__names_add(struct dt__names *list, const char *text, size_t length)
{
    return dt__names_insert(list, list->count, text, length);
}

static int compare(const char *name, const char *text, size_t length)
{
    size_t n = strlen(name);
    int order = memcmp(name, text, n < length ? n : length);
    return order ? order : (n > length) - (n < length);
}

size_t dt__names_search(char *const *names, size_t count, const char *text, size_t length,
                        bool *found)
{
    size_t low = 0, high = count;
    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(names[middle], text, length);
        *found |= order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void dt__names_sort(char **names, size_t count)
{
    if (count) qsort(names, count, sizeof *names, by_bytes);
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
