/* Writes protocol buffer messages field by field, for TensorBoard event files and ONNX. Source:
 * https://protobuf.dev/programming-guides/encoding */
#include <string.h>

#include "report/internal.h"

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void put_varint(struct dt__message *message, uint64_t value)
{
    unsigned char bytes[10];
    size_t n = 0;
    do {
        bytes[n] = (unsigned char)(value & 127);
        value >>= 7;
        if (value) bytes[n] |= 128;
        n++;
    } while (value);
    dt__text_append(&message->text, bytes, n);
}

static void put_key(struct dt__message *message, int field, enum wire wire)
{
    put_varint(message, (uint64_t)field << 3 | (uint64_t)wire);
}

void dt__message_int(struct dt__message *message, int field, int64_t value)
{
    put_key(message, field, VARINT);
    put_varint(message, (uint64_t)value);
}

void dt__message_fixed(struct dt__message *message, int field, const void *value, size_t size)
{
    put_key(message, field, size == 8 ? FIXED64 : FIXED32);
    dt__text_append(&message->text, value, size);
}

void dt__message_bytes(struct dt__message *message, int field, const void *bytes, size_t length)
{
    put_key(message, field, BYTES);
    put_varint(message, length);
    dt__text_append(&message->text, bytes, length);
}

void dt__message_text(struct dt__message *message, int field, const char *text)
{
    dt__message_bytes(message, field, text, strlen(text));
}

void dt__message_add(struct dt__message *message, int field, struct dt__message *inner)
{
    if (!message->text.status) message->text.status = inner->text.status;
    dt__message_bytes(message, field, inner->text.data, inner->text.length);
    dt__text_free(&inner->text);
}
