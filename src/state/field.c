#include "state/field.h"

#include <string.h>

#include "data/h5.h"
#include "dtrain/config.h"

enum { TEXT_MAX = 1 << 24 };

/* One attribute: its object, its name and a place in the record. */
struct slot {
    hid_t object;
    const char *path;
    const struct dt__field *field;
    void *member;
};

static dt_status fail(const struct slot *slot, const char *what)
{
    return dt__h5_fail(DT_EFORMAT, "attribute %s of %s %s", slot->field->name, slot->path, what);
}

/* ---- types ---------------------------------------------------------------------------------- */

/* HDF5's type of a number, in the file (`stored`) or in memory. */
static hid_t number_type(enum dt__field_type type, bool stored)
{
    switch (type) {
    case DT__FIELD_INT: return stored ? H5T_STD_I32LE : H5T_NATIVE_INT32;
    case DT__FIELD_I64: return stored ? H5T_STD_I64LE : H5T_NATIVE_INT64;
    case DT__FIELD_U32: return stored ? H5T_STD_U32LE : H5T_NATIVE_UINT32;
    case DT__FIELD_U64: return stored ? H5T_STD_U64LE : H5T_NATIVE_UINT64;
    case DT__FIELD_REAL: return stored ? H5T_IEEE_F64LE : H5T_NATIVE_DOUBLE;
    default: return stored ? H5T_STD_U8LE : H5T_NATIVE_UINT8;
    }
}

/* ---- writing -------------------------------------------------------------------------------- */

static dt_status write_value(const struct slot *slot, hid_t stored, hid_t held, const void *value)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(slot->object, slot->field->name, stored, space, H5P_DEFAULT,
                                 H5P_DEFAULT);
    bool good = attribute >= 0 && H5Awrite(attribute, held, value) >= 0;
    if (attribute >= 0 && H5Aclose(attribute) < 0) good = false;
    if (space >= 0) H5Sclose(space);
    return good ? DT_OK : fail(slot, "cannot be written");
}

static dt_status write_text(const struct slot *slot, const char *text)
{
    hid_t type = dt__h5_text_type(strlen(text) + 1);
    if (type < 0) return fail(slot, "cannot be written");
    dt_status status = write_value(slot, type, type, text);
    H5Tclose(type);
    return status;
}

static dt_status write_bool(const struct slot *slot, bool value)
{
    uint8_t byte = value;
    return write_value(slot, number_type(DT__FIELD_BOOL, true), number_type(DT__FIELD_BOOL, false),
                       &byte);
}

static dt_status write_slot(const struct slot *slot)
{
    char word[16];
    const char *text;
    switch (slot->field->type) {
    case DT__FIELD_TEXT:
        memcpy(&text, slot->member, sizeof text);
        return text ? write_text(slot, text) : DT_OK;
    case DT__FIELD_NAME: return write_text(slot, slot->member);
    case DT__FIELD_WORD:
        return write_text(slot, dt_config_word(slot->field->words, *(int *)slot->member, word));
    case DT__FIELD_BOOL: return write_bool(slot, *(bool *)slot->member);
    default:
        return write_value(slot, number_type(slot->field->type, true),
                           number_type(slot->field->type, false), slot->member);
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Reads a number, or `size` bytes of text, from an attribute that is one value of the type. */
static bool read_value(hid_t attribute, hid_t stored, hid_t held, void *value)
{
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    bool good = type >= 0 && space >= 0 && H5Tequal(type, stored) > 0 &&
                H5Sget_simple_extent_type(space) == H5S_SCALAR &&
                H5Aread(attribute, held, value) >= 0;
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return good;
}

/* Bytes of a text with its NUL; 0 if the attribute is no text of a fixed and sensible size. */
static size_t text_size(hid_t attribute)
{
    hid_t type = H5Aget_type(attribute);
    if (type < 0) return 0;
    size_t size = 0;
    if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0) size = H5Tget_size(type);
    H5Tclose(type);
    return size <= TEXT_MAX ? size : 0;
}

static dt_status read_text(const struct slot *slot, hid_t attribute, char **out)
{
    char *text;
    size_t size = text_size(attribute);
    if (size == 0) return fail(slot, "is not a text");
    DT_TRY(dt_alloc(size, 1, slot->field->name, &text));
    hid_t type = dt__h5_text_type(size);
    bool good = type >= 0 && read_value(attribute, type, type, text) && text[size - 1] == '\0';
    if (type >= 0) H5Tclose(type);
    if (good)
        *out = text;
    else
        dt_free(text);
    return good ? DT_OK : fail(slot, "is not a text");
}

static dt_status read_name(const struct slot *slot, hid_t attribute)
{
    char *text;
    DT_TRY(read_text(slot, attribute, &text));
    bool fits = strlen(text) < 16;
    if (fits) snprintf(slot->member, 16, "%s", text);
    dt_free(text);
    return fits ? DT_OK : fail(slot, "is too long");
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

static dt_status read_word(const struct slot *slot, hid_t attribute)
{
    char *text;
    DT_TRY(read_text(slot, attribute, &text));
    int index = word_index(slot->field->words, text);
    dt_free(text);
    if (index < 0) return fail(slot, "is not a known word");
    *(int *)slot->member = index;
    return DT_OK;
}

static dt_status read_bool(const struct slot *slot, hid_t attribute)
{
    uint8_t byte = 0;
    if (!read_value(attribute, number_type(DT__FIELD_BOOL, true),
                    number_type(DT__FIELD_BOOL, false), &byte) ||
        byte > 1)
        return fail(slot, "is neither 0 nor 1");
    *(bool *)slot->member = byte;
    return DT_OK;
}

static dt_status read_slot(const struct slot *slot, hid_t attribute)
{
    enum dt__field_type type = slot->field->type;
    switch (type) {
    case DT__FIELD_TEXT: return read_text(slot, attribute, slot->member);
    case DT__FIELD_NAME: return read_name(slot, attribute);
    case DT__FIELD_WORD: return read_word(slot, attribute);
    case DT__FIELD_BOOL: return read_bool(slot, attribute);
    default:
        if (read_value(attribute, number_type(type, true), number_type(type, false), slot->member))
            return DT_OK;
        return fail(slot, "is not a number of its type");
    }
}

static dt_status open_and_read(const struct slot *slot)
{
    if (H5Aexists(slot->object, slot->field->name) <= 0)
        return slot->field->type == DT__FIELD_TEXT ? DT_OK : fail(slot, "is missing");
    hid_t attribute = H5Aopen(slot->object, slot->field->name, H5P_DEFAULT);
    if (attribute < 0) return fail(slot, "cannot be opened");
    dt_status status = read_slot(slot, attribute);
    H5Aclose(attribute);
    return status;
}

/* ---- tables --------------------------------------------------------------------------------- */

static dt_status each_field(hid_t file, const char *path, const struct dt__field *fields, int count,
                            void *record, dt_status (*visit)(const struct slot *slot))
{
    dt_status status = DT_OK;
    if (strcmp(path, "/") && !dt__h5_exists(file, path))
        return dt_fail(DT_EFORMAT, "%s is missing", path);
    hid_t object = H5Gopen2(file, path, H5P_DEFAULT);
    if (object < 0) return dt__h5_fail(DT_EFORMAT, "%s is not a group", path);
    for (int i = 0; i < count && !status; i++) {
        struct slot slot = {object, path, &fields[i], (char *)record + fields[i].offset};
        status = visit(&slot);
    }
    H5Gclose(object);
    return status;
}

dt_status dt__fields_put(hid_t file, const char *path, const struct dt__field *fields, int count,
                         const void *record)
{
    return each_field(file, path, fields, count, (void *)record, write_slot);
}

dt_status dt__fields_get(hid_t file, const char *path, const struct dt__field *fields, int count,
                         void *record)
{
    return each_field(file, path, fields, count, record, open_and_read);
}
