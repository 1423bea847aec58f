/* Every size by which the sources cut their work: blocks, strips, chunks, buffers, tiles, first
 * sizes of tables.
 *
 * Results do not depend on any of them, so `make tiny` (DT_TINY) builds with the right column,
 * where each is at its least, and all tests pass with the same answers: what is wrong in the second
 * turn of a loop, at the edge of a block, or where a table grows, shows on tests' small data. A
 * loop within another one has a smaller size than that one, or it would have one turn. New sizes
 * belong here; those without a reason beside them cost little memory and few calls. "a row": one at
 * least.
 *
 * Constants that stay where they are used:
 * - part of results' bits: the 256 rows of an evaluation's chunk, of statistics' blocks and of
 *   samples; the chunks and windows of the order of rows; the slices of 4,096 rows of a share;
 *   lanes of sums; groups of a softmax; blocks of a norm and of a sum over replicas; blocks of q8;
 *   rows that a prediction and pictures that a convolution take at once, whose libraries have other
 *   kernels for other numbers of them;
 * - part of a file's or a protocol's format: pages, chunks and pieces of texts in HDF5, the lanes
 *   of a checksum (its tables are of their length), the layout of packed weights, tags, what a
 *   signature is looked for in;
 * - of the machine: pages, cache lines, vectors, how far ahead memory is fetched;
 * - bounds of what is taken, shown or kept (longest row, most classes, events of a trace): another
 *   bound is another answer. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#ifdef DT_TINY
#define DT__LIMIT(normal, tiny) (tiny)
#else
#define DT__LIMIT(normal, tiny) (normal)
#endif

/* clang-format off */
enum {
    /* base */
    DT__WRITE_BYTES           = DT__LIMIT(8 << 20, 300), /* a call; the disk works on the last */
    DT__READ_BYTES            = DT__LIMIT(64 << 20, 300), /* a call */
    DT__READ_TEXT_BYTES       = DT__LIMIT(1 << 14, 7), /* a call, to an end that is not known */
    DT__RNG_LANES             = DT__LIMIT(32, 2), /* blocks of random bits, in vectors */
    /* hdf5 */
    DT__H5_WRITE_BYTES        = DT__LIMIT(1 << 20, 500), /* handed on at once */
    DT__H5_READ_BYTES         = DT__LIMIT(8 << 20, 1), /* asked of the reader process; a row */
    /* text */
    DT__LINES_BYTES           = DT__LIMIT(1 << 18, 1), /* of text read at once */
    DT__UNPACK_BYTES          = DT__LIMIT(1 << 17, 7), /* of a packed file, in and out */
    DT__DICT_SLOTS            = DT__LIMIT(64, 2), /* of a new dictionary; doubled */
    /* data */
    DT__TYPED_BYTES           = DT__LIMIT(1 << 18, 1), /* of typed rows, at once; a row */
    DT__IDX_BYTES             = DT__LIMIT(1 << 16, 8), /* of numbers converted at once */
    DT__IDX_LABELS            = DT__LIMIT(1024, 3), /* rows */
    DT__H5_LABELS             = DT__LIMIT(1024, 3), /* rows; one-hot ones are wide */
    DT__MARK_BYTES            = DT__LIMIT(1 << 17, 50), /* of text between places to start at */
    DT__OPEN_FILES            = DT__LIMIT(8, 1),  /* of one reader of rows */
    DT__SIFTED_ROWS           = DT__LIMIT(256, 7), /* at once, some of them held out */
    DT__HELD_OUT_ROWS         = DT__LIMIT(4096, 64), /* that one count of them stands for */
    DT__LOAD_BYTES            = DT__LIMIT(16 << 20, 1000), /* between two looks for a stop */
    DT__SHUFFLE_BYTES         = DT__LIMIT(1 << 18, 1), /* of a bucket's buffer; a row */
    DT__SHARD_BYTES           = DT__LIMIT(1 << 20, 1000), /* read or written at once; a row */
    /* model */
    DT__SORT_BITS             = DT__LIMIT(11, 1), /* of a pass; counts stay near */
    DT__DROPOUT_BLOCKS        = DT__LIMIT(64, 1), /* of random bits at once */
    DT__BIAS_STRIP            = DT__LIMIT(64, 3), /* columns; sums stay in registers */
    DT__NORM_STRIP            = DT__LIMIT(64, 3), /* channels whose sums stay near */
    DT__ACTIVATION_STRIP      = DT__LIMIT(256, 3), /* values */
    DT__TILE_VALUES           = DT__LIMIT(1 << 15, 1 << 11), /* measured: model/bf16_products.c */
    DT__TILE_COLUMNS          = DT__LIMIT(1 << 10, 1 << 6),
    /* comm */
    DT__MPI_CHUNK             = DT__LIMIT(64 << 20, 4000), /* bytes a call, counts are int */
    DT__CHUNK                 = DT__LIMIT(15 << 10, 250), /* floats: below TCP's eager limit */
    DT__SLICE_CHUNKS          = DT__LIMIT(64, 3), /* of a slice at most */
    DT__LEAST_SLICE           = DT__LIMIT(1024, 16), /* floats: fewer are not dealt out to all */
    DT__LEAST_NODE_SLICE      = DT__LIMIT(256, 32), /* floats: the same for nodes */
    DT__ASKS_RADIX            = DT__LIMIT(16, 2), /* comm/exchange.h: 15 messages a round */
    DT__STREAM_CHUNKS         = DT__LIMIT(16, 1), /* under way at once */
    DT__ASYNC_BLOCK           = DT__LIMIT(8192, 256), /* floats: stay in the second cache */
    DT__ASYNC_PROGRESS_BLOCKS = DT__LIMIT(32, 1), /* between two looks for messages */
    DT__ASYNC_AT_ONCE         = DT__LIMIT(64, 2), /* gradients applied in one pass */
    /* updates that are not yet recorded. Who fills it waits, and its next gradient is of older
     * weights: a worker alone, whose bits tests know, may not */
    DT__ASYNC_LOG = DT__LIMIT(1024, 256),
    DT__ASYNC_RECORDS         = DT__LIMIT(64, 1), /* of them, read at once */
    /* state, report */
    DT__VERIFY_BYTES          = DT__LIMIT(1 << 18, 512), /* of a checkpoint, for its checksum */
    DT__RECORDS_TAIL_BYTES    = DT__LIMIT(4096, 7), /* looked through for the last line */
    DT__RECORDS_COPY_BYTES    = DT__LIMIT(1 << 14, 7),
    DT__RECORDS_READ_BYTES    = DT__LIMIT(1 << 20, 7), /* more for a line that is longer */
    /* predict */
    DT__BODY_BYTES = DT__LIMIT(64 << 10, 1)       /* of a request's body at first */
};
/* clang-format on */

#endif
