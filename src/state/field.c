#include "state/field.h"

#include <string.h>

#include "data/h5.h"
#include "dtrain/config.h"
#include "state/array.h"

enum { NAME_SIZE = 16, TEXT_PIECE = 60000, TEXT_MOST = 1 << 20 };

/* Type of a number in the file; a bool is a byte. */
static enum dt__type number_type(enum dt__field_kind kind)
{
    switch (kind) {
    case DT__FIELD_INT:
        return DT__I32;
    case DT__FIELD_I64:
        return DT__I64;
    case DT__FIELD_U32:
        return DT__U32;
    case DT__FIELD_U64:
        return DT__U64;
    case DT__FIELD_REAL:
        return DT__F64;
    default:
        return DT__U8;
    }
}

/* Name of a text's piece: "config", "config_1", "config_2", ... */
static void piece_name(char out[64], const char *name, size_t piece)
{
    if (piece == 0)
        snprintf(out, 64, "%s", name);
    else
        snprintf(out, 64, "%s_%zu", name, piece);
}

/* ---- writing -------------------------------------------------------------------------------- */

static dt_status write_value(hid_t object, const char *name, hid_t type, const void *value)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, type, value) >= 0;
    if (attribute >= 0 && H5Aclose(attribute) < 0) good = false;
    if (space >= 0) H5Sclose(space);
    return good ? DT_OK : dt__h5_fail(DT_EIO, "attribute %s cannot be written", name);
}

static dt_status write_piece(hid_t object, const char *name, const char *text, size_t length)
{
    char piece[TEXT_PIECE + 1] = "";
    memcpy(piece, text, length);
    hid_t type = dt__h5_text_type(length + 1);
    if (type < 0) return dt__h5_fail(DT_EIO, "attribute %s cannot be written", name);
    dt_status status = write_value(object, name, type, piece);
    H5Tclose(type);
    return status;
}

static dt_status write_text(hid_t object, const char *name, const char *text)
{
    size_t length = strlen(text), piece = 0;
    if (length > TEXT_MOST)
        return dt_fail(DT_EFORMAT, "%s of %zu bytes is too long to be kept", name, length);
    do {
        char piece_of[64];
        size_t part = length < TEXT_PIECE ? length : TEXT_PIECE;
        piece_name(piece_of, name, piece++);
        DT_TRY(write_piece(object, piece_of, text, part));
        text += part;
        length -= part;
    } while (length > 0);
    return DT_OK;
}

static dt_status write_field(hid_t object, const struct dt__field *field, const void *member)
{
    char word[16];
    const char *text;
    uint8_t byte;
    switch (field->kind) {
    case DT__FIELD_TEXT:
        memcpy(&text, member, sizeof text);
        return text ? write_text(object, field->name, text) : DT_OK;
    case DT__FIELD_NAME:
        return write_text(object, field->name, member);
    case DT__FIELD_WORD:
        return write_text(object, field->name,
                          dt_config_word(field->words, *(const int *)member, word));
    case DT__FIELD_BOOL:
        byte = *(const bool *)member;
        return write_value(object, field->name, dt__stored_type(DT__U8), &byte);
    default:
        return write_value(object, field->name, dt__stored_type(number_type(field->kind)), member);
    }
}

dt_status dt__fields_put(hid_t file, const char *path, const struct dt__field *fields, int count,
                         const void *record)
{
    dt_status status = DT_OK;
    hid_t object = H5Gopen2(file, path, H5P_DEFAULT);
    if (object < 0) return dt__h5_fail(DT_EIO, "%s cannot be opened", path);
    for (int i = 0; i < count && !status; i++)
        status = write_field(object, &fields[i], (const char *)record + fields[i].offset);
    H5Gclose(object);
    return status;
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool read_number(const struct dt__object *object, const char *name, enum dt__type type,
                        void *out)
{
    struct dt__value value;
    if (!dt__object_attribute(object, name, &value) || value.type != type) return false;
    memcpy(out, value.bytes.at, value.size);
    return true;
}

static bool read_bool(const struct dt__object *object, const char *name, bool *out)
{
    uint8_t byte;
    if (!read_number(object, name, DT__U8, &byte) || byte > 1) return false;
    *out = byte;
    return true;
}

/* A text's bytes without its NUL, which must be there and the only one. */
static bool find_piece(const struct dt__object *object, const char *name, struct dt__span *out)
{
    struct dt__value value;
    if (!dt__object_attribute(object, name, &value) || value.type != DT__TEXT) return false;
    *out = (struct dt__span){value.bytes.at, value.size - 1};
    return value.bytes.at[out->left] == '\0' && !memchr(out->at, '\0', out->left);
}

static bool read_name(const struct dt__object *object, const char *name, char out[NAME_SIZE])
{
    struct dt__span piece;
    if (!find_piece(object, name, &piece) || piece.left >= NAME_SIZE) return false;
    memcpy(out, piece.at, piece.left);
    out[piece.left] = '\0';
    return true;
}

/* Place of `word` in "sync|async"; -1 if it is none of them. */
static int word_index(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (int index = 0; length > 0; index++) {
        size_t here = strcspn(words, "|");
        if (here == length && !memcmp(words, word, length)) return index;
        if (words[here] == '\0') break;
        words += here + 1;
    }
    return -1;
}

static bool read_word(const struct dt__object *object, const struct dt__field *field, int *out)
{
    char word[NAME_SIZE];
    if (!read_name(object, field->name, word)) return false;
    *out = word_index(field->words, word);
    return *out >= 0;
}

/* All pieces of a text as one; *out stays as it is if there is none. */
static dt_status read_text(const struct dt__object *object, const char *name, char **out)
{
    char piece_of[64];
    struct dt__span piece;
    struct dt_text text = {0};
    dt_status status = DT_OK;
    piece_name(piece_of, name, 0);
    for (size_t i = 1; !status && find_piece(object, piece_of, &piece); i++) {
        status = dt_text_append(&text, piece.at, piece.left);
        piece_name(piece_of, name, i);
    }
    if (status)
        dt_text_free(&text);
    else if (text.data)
        *out = text.data;
    return status;
}

/* A text that is not as it should be counts as missing: its owner says whether it may. */
static dt_status read_field(const struct dt__object *object, const char *path,
                            const struct dt__field *field, void *member)
{
    bool good;
    switch (field->kind) {
    case DT__FIELD_TEXT:
        return read_text(object, field->name, member);
    case DT__FIELD_NAME:
        good = read_name(object, field->name, member);
        break;
    case DT__FIELD_WORD:
        good = read_word(object, field, member);
        break;
    case DT__FIELD_BOOL:
        good = read_bool(object, field->name, member);
        break;
    default:
        good = read_number(object, field->name, number_type(field->kind), member);
    }
    if (good) return DT_OK;
    return dt_fail(DT_EFORMAT, "attribute %s of %s is missing or not as expected", field->name,
                   path);
}

dt_status dt__fields_get(const struct dt__tree *tree, const char *path,
                         const struct dt__field *fields, int count, void *record)
{
    struct dt__object object;
    if (!dt__tree_object(tree, path, &object)) return dt_fail(DT_EFORMAT, "%s is missing", path);
    for (int i = 0; i < count; i++)
        DT_TRY(read_field(&object, path, &fields[i], (char *)record + fields[i].offset));
    return DT_OK;
}
