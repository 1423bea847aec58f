#include "config/named_sets.h"

#include <stdlib.h>
#include <string.h>

const char DT__TEST_SET[] = "test", DT__INIT_SET[] = "init";
static const char TRAIN_SET[] = "train";

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns the length of a set's name if a colon follows it, else 0. */
static size_t name_length(const char *word)
{
    size_t length = 0;
    if (!is_letter(*word)) return 0;
    while (is_letter(word[length]) || word[length] == '_' ||
           (word[length] >= '0' && word[length] <= '9'))
        length++;
    return word[length] == ':' ? length : 0;
}

/* Returns the end of the current word of a list: its comma, or the end of the text. */
static const char *word_end(const char *at)
{
    for (; *at && *at != ','; at++)
        at += *at == '\\' && at[1];
    return at;
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\n");
}

static struct dt__named_set *set_find(const struct dt__named_sets *sets, const char *name,
                                      size_t length)
{
    for (size_t i = 0; i < sets->count; i++)
        if (strlen(sets->items[i].name) == length && !memcmp(sets->items[i].name, name, length))
            return &sets->items[i];
    return NULL;
}

/* Reads the set that begins at *at, NAME:FILES, and moves *at to the next set. The name is borrowed
 * from the text; the caller frees the list. */
static dt_status set_next(const char *key, const char **at, const char **out_name,
                          size_t *out_length, char **out_list)
{
    const char *begin = skip_blanks(*at), *end;
    const size_t length = name_length(begin);
    const int shown = (int)(word_end(begin) - begin);
    if (!length)
        return dt_fail(DT_EUSAGE,
                       "%s: '%.*s': expected NAME:FILES, NAME being a letter and then letters, "
                       "digits or _",
                       key, shown < 80 ? shown : 80, begin);
    if (length >= DT__SET_NAME)
        return dt_fail(DT_EUSAGE, "%s: '%.*s': a name has at most %d characters", key, (int)length,
                       begin, DT__SET_NAME - 1);
    const char *list = begin + length + 1, *next = list;
    do {
        end = word_end(next);
        next = end + (*end == ',');
    } while (*end && !name_length(skip_blanks(next)));
    if (skip_blanks(list) >= end)
        return dt_fail(DT_EUSAGE, "%s: '%.*s': expected files after the colon", key, (int)length,
                       begin);
    *out_name = begin;
    *out_length = length;
    *at = next;
    return dt__format(out_list, "%.*s", (int)(end - list), list);
}

/* Sets set->sample if the set is train:N, a sample of N training rows. A file with such a name must
 * be written ./train:N. */
static dt_status sample_parse(struct dt__named_set *set)
{
    char *end;
    const char *text = skip_blanks(set->files);
    const double rows = dt__real_read(text, &end);
    if (strcmp(set->name, TRAIN_SET)) return DT_OK;
    if (!(rows >= 1) || rows > 9e15 || rows != (double)(uint64_t)rows || *skip_blanks(end))
        return dt_fail(DT_EUSAGE, "eval.also: 'train:%s': expected a number of training rows",
                       set->files);
    set->sample = (uint64_t)rows;
    return DT_OK;
}

static dt_status set_add(struct dt__named_sets *sets, const char *name, size_t length, char *files)
{
    size_t capacity = sets->count;
    if (set_find(sets, name, length) ||
        (length == strlen(DT__INIT_SET) && !memcmp(name, DT__INIT_SET, length))) {
        dt_free(files);
        return dt_fail(DT_EUSAGE, "eval.also: the name '%.*s' is taken", (int)length, name);
    }
    const dt_status status =
        dt__grow(&sets->items, &capacity, sets->count + 1, sizeof *sets->items, "sets of rows");
    if (status) {
        dt_free(files);
        return status;
    }
    struct dt__named_set *set = &sets->items[sets->count++];
    *set = (struct dt__named_set){.files = files};
    memcpy(set->name, name, length);
    DT_TRY(dt__strdup("", &set->labels));
    return sample_parse(set);
}

static dt_status labels_add(const struct dt__named_sets *sets, const char *name, size_t length,
                            char *labels)
{
    struct dt__named_set *set = set_find(sets, name, length);
    if (!set || *set->labels || set->sample) {
        dt_free(labels);
        return dt_fail(DT_EUSAGE, "eval.also_labels: '%.*s': %s", (int)length, name,
                       set ? "its labels are known" : "eval.also has no such set");
    }
    dt_free(set->labels);
    set->labels = labels;
    return DT_OK;
}

dt_status dt__sets_parse(const struct dt_config *config, struct dt__named_sets *out)
{
    const char *const keys[] = {"eval.also", "eval.also_labels"};
    const char *const texts[] = {config->eval.also, config->eval.also_labels};
    struct dt__named_sets sets = {0};
    dt_status status = DT_OK;
    *out = sets;
    if (config->data.test_fraction > 0) {
        char *none;
        DT_TRY(dt__strdup("", &none));
        DT_GUARD(set_add(&sets, DT__TEST_SET, strlen(DT__TEST_SET), none));
        sets.items[0].split = true;
    }
    for (int k = 0; k < 2; k++)
        for (const char *at = texts[k]; *skip_blanks(at) && !status;) {
            const char *name;
            char *list;
            size_t length;
            DT_GUARD(set_next(keys[k], &at, &name, &length, &list));
            status = k ? labels_add(&sets, name, length, list) : set_add(&sets, name, length, list);
        }
done:
    if (status)
        dt__sets_free(&sets);
    else
        *out = sets;
    return status;
}

void dt__sets_free(struct dt__named_sets *sets)
{
    for (size_t i = 0; i < sets->count; i++) {
        dt_free(sets->items[i].files);
        dt_free(sets->items[i].labels);
    }
    dt_free(sets->items);
    *sets = (struct dt__named_sets){0};
}
