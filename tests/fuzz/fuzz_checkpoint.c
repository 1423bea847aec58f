/* Any bytes as a checkpoint and as a model: loaded or refused with a message. The user block is made
 * to fit, so that the fuzzer gets behind the checksum.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -D_GNU_SOURCE -Iinclude -Isrc \
 *       tests/fuzz/fuzz_checkpoint.c src/base/[a-z]*.c src/config/[a-z]*.c src/data/[a-z]*.c \
 *       src/model/[a-z]*.c src/state/[a-z]*.c -lm -o fuzz_checkpoint \
 *       $(pkg-config --cflags --libs hdf5-serial openblas inih jansson zlib)
 *   ./fuzz_checkpoint -max_len=16384 -max_total_time=60 RUN_DIR/ckpt */
#include <stdlib.h>
#include <string.h>

#include "state/checkpoint.h"
#include "state/export.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes in memory of their own, behind a user block that is right. */
static void make_image(const uint8_t *data, size_t size, struct dt__image *image)
{
    image->length = image->capacity = size < DT__USER_BLOCK ? DT__USER_BLOCK : size;
    image->bytes = calloc(1, image->length);
    if (!image->bytes) abort();
    if (size) memcpy(image->bytes, data, size);
    memset(image->bytes, 0, DT__USER_BLOCK);
    size_t behind = image->length - DT__USER_BLOCK;
    snprintf((char *)image->bytes, DT__USER_BLOCK, "dtrain checkpoint 1 crc32c=%08x bytes=%zu\n",
             dt_crc32c(0, image->bytes + DT__USER_BLOCK, behind), behind);
}

static void load(const struct dt__image *image)
{
    struct dt_checkpoint checkpoint;
    struct dt_export model;
    enum dt__image_kind kind;
    if (dt__image_check("fuzz", image->bytes, image->length, &kind)) abort();
    if (!dt__checkpoint_unpack("fuzz", image, &checkpoint)) dt_checkpoint_free(&checkpoint);
    if (!dt__export_unpack("fuzz", image, &model)) dt_export_free(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dt__image image;
    enum dt__image_kind kind;
    dt_status raw = dt__image_check("fuzz", data, size, &kind); /* as it comes */
    (void)raw;
    make_image(data, size, &image);
    load(&image);
    free(image.bytes);
    return 0;
}
