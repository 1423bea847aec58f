#include "state/tree.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are taken as they are stored");

static const uint64_t NOWHERE = UINT64_MAX; /* HDF5's undefined address */

/* ---- spans: read from the front, never beyond the end -------------------------------------- */

static bool take(struct dt__span *from, uint64_t length, struct dt__span *out)
{
    if (length > from->left) return false;
    *out = (struct dt__span){from->at, (size_t)length};
    from->at += length;
    from->left -= (size_t)length;
    return true;
}

static bool skip(struct dt__span *from, uint64_t length)
{
    struct dt__span skipped;
    return take(from, length, &skipped);
}

/* A number of 1, 2, 4 or 8 bytes. */
static bool number(struct dt__span *from, size_t width, uint64_t *out)
{
    struct dt__span bytes;
    uint64_t value = 0;
    if (!take(from, width, &bytes)) return false;
    memcpy(&value, bytes.at, width);
    *out = value;
    return true;
}

/* Whether the next byte is `value`. */
static bool byte_is(struct dt__span *from, uint64_t value)
{
    uint64_t byte;
    return number(from, 1, &byte) && byte == value;
}

static bool starts_with(struct dt__span *from, const void *bytes, size_t length)
{
    struct dt__span start;
    return take(from, length, &start) && !memcmp(start.at, bytes, length);
}

static bool span_at(struct dt__span file, uint64_t address, uint64_t length, struct dt__span *out)
{
    return skip(&file, address) && take(&file, length, out);
}

/* ---- superblock ----------------------------------------------------------------------------- */

bool dt__tree_open(const struct dt__image *image, struct dt__tree *out)
{
    struct dt__span file = {image->bytes, image->length}, block;
    uint64_t version, base, end;
    if (!skip(&file, DT__USER_BLOCK)) return false;
    out->file = block = file;
    return starts_with(&block, "\x89HDF\r\n\x1a\n", 8) && number(&block, 1, &version) &&
           (version == 2 || version == 3) && byte_is(&block, 8) && byte_is(&block, 8) &&
           byte_is(&block, 0) && number(&block, 8, &base) && base == DT__USER_BLOCK &&
           skip(&block, 8) && number(&block, 8, &end) && number(&block, 8, &out->root);
}

/* ---- object headers ------------------------------------------------------------------------- */

enum { /* types of messages */
       SPACE = 1,
       TYPE = 3,
       LINK = 6,
       LAYOUT = 8,
       ATTRIBUTE = 12,
       CONTINUATION = 16
};

/* Goes over the messages of all blocks, also of those that are added on the way. */
struct cursor {
    const struct dt__object *object;
    int block;
    struct dt__span rest; /* of the block */
};

static struct cursor cursor_at(const struct dt__object *object)
{
    return (struct cursor){object, 0, object->blocks[0]};
}

/* A block may end with a gap that is too small for a message. */
static bool enter_block(struct cursor *cursor, size_t prefix)
{
    while (cursor->rest.left < prefix) {
        if (++cursor->block >= cursor->object->count) return false;
        cursor->rest = cursor->object->blocks[cursor->block];
    }
    return true;
}

/* The next message; false at the end, and at one that runs over its block. */
static bool next_message(struct cursor *cursor, uint64_t *type, struct dt__span *message)
{
    uint64_t length;
    struct dt__span *rest = &cursor->rest;
    const size_t order = cursor->object->ordered ? 2 : 0;
    return enter_block(cursor, 4 + order) && number(rest, 1, type) && number(rest, 2, &length) &&
           skip(rest, 1 + order) && take(rest, length, message);
}

static bool add_block(struct dt__span block, struct dt__object *object)
{
    if (object->count == DT__MAX_BLOCKS || block.left > DT__MAX_HEADER - object->length)
        return false;
    object->length += block.left;
    object->blocks[object->count++] = block;
    return true;
}

/* A continuation block: "OCHK", messages, checksum. */
static bool add_continuation(struct dt__span file, struct dt__span message,
                             struct dt__object *object)
{
    enum { CHECKSUM = 4 };
    uint64_t address, length;
    struct dt__span block;
    if (!number(&message, 8, &address) || !number(&message, 8, &length) ||
        !span_at(file, address, length, &block) || !starts_with(&block, "OCHK", 4) ||
        block.left < CHECKSUM)
        return false;
    block.left -= CHECKSUM;
    return add_block(block, object);
}

/* The header's own block, behind what comes before its messages. */
static bool add_first(struct dt__span file, uint64_t address, struct dt__object *object)
{
    enum { ORDERED = 4, PHASES = 0x10, TIMES = 0x20 };
    uint64_t flags, length;
    struct dt__span block;
    if (!skip(&file, address) || !starts_with(&file, "OHDR\2", 5) || !number(&file, 1, &flags))
        return false;
    object->ordered = flags & ORDERED;
    object->count = 0;
    object->length = 0;
    return skip(&file, (flags & TIMES ? 16u : 0) + (flags & PHASES ? 4u : 0)) &&
           number(&file, (size_t)1 << (flags & 3), &length) && take(&file, length, &block) &&
           add_block(block, object);
}

static bool open_object(struct dt__span file, uint64_t address, struct dt__object *out)
{
    uint64_t type;
    struct dt__span message;
    if (!add_first(file, address, out)) return false;
    struct cursor cursor = cursor_at(out);
    while (next_message(&cursor, &type, &message))
        if (type == CONTINUATION && !add_continuation(file, message, out)) return false;
    return true;
}

/* The first message of a type. */
static bool find_message(const struct dt__object *object, uint64_t wanted, struct dt__span *out)
{
    uint64_t type;
    struct cursor cursor = cursor_at(object);
    while (next_message(&cursor, &type, out))
        if (type == wanted) return true;
    return false;
}

/* ---- links ---------------------------------------------------------------------------------- */

/* Address of a hard link of that name. */
static bool match_link(struct dt__span link, const char *name, size_t name_length, uint64_t *out)
{
    enum { ORDERED = 4, TYPED = 8, CHARSET = 16 };
    uint64_t flags, length;
    return byte_is(&link, 1) && number(&link, 1, &flags) &&
           (!(flags & TYPED) || byte_is(&link, 0)) &&
           skip(&link, (flags & ORDERED ? 8u : 0) + (flags & CHARSET ? 1u : 0)) &&
           number(&link, (size_t)1 << (flags & 3), &length) && length == name_length &&
           starts_with(&link, name, name_length) && number(&link, 8, out) && *out != NOWHERE;
}

static bool find_link(const struct dt__object *group, const char *name, size_t length,
                      uint64_t *out)
{
    uint64_t type;
    struct dt__span message;
    struct cursor cursor = cursor_at(group);
    while (next_message(&cursor, &type, &message))
        if (type == LINK && match_link(message, name, length, out)) return true;
    return false;
}

bool dt__tree_object(const struct dt__tree *tree, const char *path, struct dt__object *out)
{
    uint64_t address;
    if (!open_object(tree->file, tree->root, out)) return false;
    while (*(path += strspn(path, "/"))) {
        size_t length = strcspn(path, "/");
        if (!find_link(out, path, length, &address) || !open_object(tree->file, address, out))
            return false;
        path += length;
    }
    return true;
}

/* ---- values --------------------------------------------------------------------------------- */

/* The types that we write, as they are stored. */
static const struct {
    unsigned char length, bytes[20];
} TYPES[] = {
    [DT__U8] = {12, {0x10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 8}},
    [DT__I32] = {12, {0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32}},
    [DT__U32] = {12, {0x10, 0, 0, 0, 4, 0, 0, 0, 0, 0, 32}},
    [DT__I64] = {12, {0x10, 8, 0, 0, 8, 0, 0, 0, 0, 0, 64}},
    [DT__U64] = {12, {0x10, 0, 0, 0, 8, 0, 0, 0, 0, 0, 64}},
    [DT__F32] = {20, {0x11, 32, 31, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127}},
    [DT__F64] = {20, {0x11, 32, 63, 0, 8, 0, 0, 0, 0, 0, 64, 0, 52, 11, 0, 52, 255, 3}},
};
static const unsigned char TEXT[4] = {0x13, 16, 0, 0}; /* and its size in 4 bytes */

static bool parse_type(struct dt__span stored, struct dt__value *out)
{
    uint64_t size;
    struct dt__span text = stored;
    for (int i = DT__U8; i <= DT__F64; i++) {
        if (stored.left != TYPES[i].length || memcmp(stored.at, TYPES[i].bytes, stored.left))
            continue;
        out->type = (enum dt__type)i;
        out->size = TYPES[i].bytes[4];
        return true;
    }
    out->type = DT__TEXT;
    if (!starts_with(&text, TEXT, sizeof TEXT) || !number(&text, 4, &size)) return false;
    out->size = (size_t)size;
    return size > 0 && text.left == 0;
}

/* One value, or a rank of 1 or 2 without an empty dimension. */
static bool parse_space(struct dt__span stored, struct dt__value *out)
{
    enum { SCALAR, SIMPLE };
    uint64_t rank, flags, kind;
    if (!byte_is(&stored, 2) || !number(&stored, 1, &rank) || rank > 2 ||
        !number(&stored, 1, &flags) || !number(&stored, 1, &kind) ||
        kind != (rank ? SIMPLE : SCALAR))
        return false;
    out->rank = (int)rank;
    out->count = 1;
    for (int i = 0; i < out->rank; i++)
        if (!number(&stored, 8, &out->dims[i]) || out->dims[i] == 0 ||
            !dt_size_mul(out->count, out->dims[i], &out->count))
            return false;
    return true;
}

static bool parse_attribute(struct dt__span message, const char *name, struct dt__value *out)
{
    uint64_t name_size, type_size, space_size;
    struct dt__span stored, type, space;
    return byte_is(&message, 3) && byte_is(&message, 0) && number(&message, 2, &name_size) &&
           number(&message, 2, &type_size) && number(&message, 2, &space_size) &&
           skip(&message, 1) && take(&message, name_size, &stored) &&
           name_size == strlen(name) + 1 && !memcmp(stored.at, name, stored.left) &&
           take(&message, type_size, &type) && take(&message, space_size, &space) &&
           parse_type(type, out) && parse_space(space, out) && out->rank == 0 &&
           take(&message, out->size, &out->bytes);
}

bool dt__object_attribute(const struct dt__object *object, const char *name, struct dt__value *out)
{
    uint64_t type;
    struct dt__span message;
    struct cursor cursor = cursor_at(object);
    while (next_message(&cursor, &type, &message))
        if (type == ATTRIBUTE && parse_attribute(message, name, out)) return true;
    return false;
}

/* Contiguous storage of just the size that type and space ask for. */
static bool parse_layout(struct dt__span file, struct dt__span message, struct dt__value *out)
{
    enum { CONTIGUOUS = 1 };
    uint64_t version, address, stored, size;
    return number(&message, 1, &version) && (version == 3 || version == 4) &&
           byte_is(&message, CONTIGUOUS) && number(&message, 8, &address) &&
           number(&message, 8, &stored) && dt_size_mul(out->count, out->size, &size) &&
           stored == size && span_at(file, address, size, &out->bytes);
}

bool dt__tree_dataset(const struct dt__tree *tree, const char *path, struct dt__value *out)
{
    struct dt__object object;
    struct dt__span message;
    return dt__tree_object(tree, path, &object) && find_message(&object, TYPE, &message) &&
           parse_type(message, out) && find_message(&object, SPACE, &message) &&
           parse_space(message, out) && out->rank > 0 && find_message(&object, LAYOUT, &message) &&
           parse_layout(tree->file, message, out);
}
