#include "state/field.h"

#include <string.h>

#include "dtrain/config.h"

enum { NAME_SIZE = 16, TEXT_PIECE = 60000, TEXT_MOST = 1 << 20, PATH_SIZE = 192 };

static const enum dt__h5_type NUMBERS[] = {
    [DT__FIELD_INT] = DT__H5_I32, [DT__FIELD_I64] = DT__H5_I64,  [DT__FIELD_U32] = DT__H5_U32,
    [DT__FIELD_U64] = DT__H5_U64, [DT__FIELD_REAL] = DT__H5_F64, [DT__FIELD_BOOL] = DT__H5_U8};

/* Name of a text's piece: "config", "config_1", "config_2", ... */
static void piece_name(char out[64], const char *name, size_t piece)
{
    if (piece == 0)
        snprintf(out, 64, "%s", name);
    else
        snprintf(out, 64, "%s_%zu", name, piece);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* An attribute holds 64 KiB at most. */
static void put_text(struct dt__h5_layout *layout, const char *path, const char *name,
                     const char *text)
{
    char piece_of[64];
    size_t length = strlen(text), piece = 0;
    if (length > TEXT_MOST)
        dt__h5_layout_fail(
            layout, dt_fail(DT_EFORMAT, "%s of %zu bytes is too long to be kept", name, length));
    do {
        size_t part = length < TEXT_PIECE ? length : TEXT_PIECE;
        piece_name(piece_of, name, piece++);
        dt__h5_put_text(layout, path, piece_of, text, part);
        text += part;
        length -= part;
    } while (length > 0);
}

void dt__fields_put(struct dt__h5_layout *layout, const char *path, const struct dt__field *fields,
                    int count, const void *record)
{
    for (int i = 0; i < count; i++) {
        const struct dt__field *field = &fields[i];
        const void *member = (const char *)record + field->offset;
        char word[16];
        const char *text;
        uint8_t byte;
        switch (field->kind) {
        case DT__FIELD_TEXT:
            memcpy(&text, member, sizeof text);
            if (text) put_text(layout, path, field->name, text);
            break;
        case DT__FIELD_NAME:
            put_text(layout, path, field->name, member);
            break;
        case DT__FIELD_WORD:
            put_text(layout, path, field->name,
                     dt_config_word(field->words, *(const int *)member, word));
            break;
        case DT__FIELD_BOOL:
            byte = *(const bool *)member;
            dt__h5_put_number(layout, path, field->name, DT__H5_U8, &byte);
            break;
        default:
            dt__h5_put_number(layout, path, field->name, NUMBERS[field->kind], member);
        }
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

static const struct dt__h5_item *find_attribute(const struct dt__h5_file *file, const char *path,
                                                const char *name, enum dt__h5_type type)
{
    char at[PATH_SIZE];
    snprintf(at, sizeof at, "%s@%s", path, name);
    const struct dt__h5_item *item = dt__h5_find(file, DT__H5_ATTRIBUTE, at);
    return item && item->type == type ? item : NULL;
}

static bool get_name(const struct dt__h5_file *file, const char *path, const char *name,
                     char out[NAME_SIZE])
{
    const struct dt__h5_item *item = find_attribute(file, path, name, DT__H5_TEXT);
    if (!item || item->length > NAME_SIZE) return false;
    memcpy(out, item->data, item->length);
    return true;
}

/* All pieces of a text as one; *out stays as it is if there is none. */
static dt_status get_text(const struct dt__h5_file *file, const char *path, const char *name,
                          char **out)
{
    char piece_of[64];
    const struct dt__h5_item *item;
    struct dt_text text = {0};
    dt_status status = DT_OK;
    for (size_t piece = 0; !status; piece++) {
        piece_name(piece_of, name, piece);
        item = find_attribute(file, path, piece_of, DT__H5_TEXT);
        if (!item) break;
        status = dt_text_append(&text, item->data, item->length - 1);
    }
    if (status)
        dt_text_free(&text);
    else if (text.data)
        *out = text.data;
    return status;
}

/* A text that is not as it should be counts as missing: its owner says whether it may. */
static dt_status get_field(const struct dt__h5_file *file, const char *path,
                           const struct dt__field *field, void *member)
{
    bool good;
    char word[NAME_SIZE], at[PATH_SIZE];
    const struct dt__h5_item *number;
    enum dt__h5_type type;
    uint8_t byte;
    switch (field->kind) {
    case DT__FIELD_TEXT:
        return get_text(file, path, field->name, member);
    case DT__FIELD_NAME:
        good = get_name(file, path, field->name, member);
        break;
    case DT__FIELD_WORD:
        good = get_name(file, path, field->name, word) &&
               (*(int *)member = dt_config_word_index(field->words, word)) >= 0;
        break;
    default:
        type = NUMBERS[field->kind];
        number = find_attribute(file, path, field->name, type);
        good = number != NULL;
        if (good && field->kind == DT__FIELD_BOOL) {
            memcpy(&byte, number->data, 1);
            *(bool *)member = byte == 1;
            good = byte <= 1;
        } else if (good) {
            memcpy(member, number->data, dt__h5_type_size(type));
        }
    }
    snprintf(at, sizeof at, "%s@%s", path, field->name);
    if (good || (field->optional && !dt__h5_find(file, DT__H5_ATTRIBUTE, at))) return DT_OK;
    return dt_fail(DT_EFORMAT, "attribute %s of %s is missing or not as expected", field->name,
                   path);
}

dt_status dt__fields_get(const struct dt__h5_file *file, const char *path,
                         const struct dt__field *fields, int count, void *record)
{
    if (!dt__h5_find(file, DT__H5_GROUP, path)) return dt_fail(DT_EFORMAT, "%s is missing", path);
    for (int i = 0; i < count; i++)
        DT_TRY(get_field(file, path, &fields[i], (char *)record + fields[i].offset));
    return DT_OK;
}
