/* All sizes by which the sources divide their work: blocks, chunks, buffers, tiles, first sizes of
 * tables.
 *
 * Results do not depend on any of them. `make tiny` (DT_TINY) builds with the right column, where
 * each is at its minimum, and all tests must pass with the same answers. So errors in the second
 * turn of a loop, at the edge of a block, or where a table grows show on the small data of tests.
 * An inner loop needs a smaller size than the loop around it, or it would run once. New sizes
 * belong here; those without a stated reason cost little memory and few calls.
 *
 * Constants that stay where they are used:
 * - they determine bits of results: the 256 rows of an evaluation's chunk, of statistics' blocks
 *   and of samples; the chunks and windows of the order of rows; the ranges of 4,096 rows of a
 *   replica; partial sums of a sum; groups of a softmax; blocks of a norm and of a sum over
 *   replicas; blocks of q8; rows that a prediction and pictures that a convolution take at once,
 *   whose libraries use other kernels for other counts;
 * - they belong to a file format or protocol: pages, chunks and text lengths in HDF5, the
 *   interleaved sums of a checksum (its tables have their length), the layout of packed weights,
 *   tags, where a signature is searched;
 * - they belong to the machine: pages, cache lines, vectors, the distance of prefetching;
 * - they limit what is accepted, shown or kept (longest row, most classes, events of a trace):
 *   another limit is another answer. */
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
    DT__WRITE_BYTES           = DT__LIMIT(8 << 20, 300), /* per call; meanwhile the disk writes */
    DT__READ_BYTES            = DT__LIMIT(64 << 20, 300), /* per call */
    DT__READ_TEXT_BYTES       = DT__LIMIT(1 << 14, 7), /* per call, if the length is not known */
    DT__RNG_LANES             = DT__LIMIT(32, 2), /* random blocks at once, in vectors */
    /* hdf5 */
    DT__H5_WRITE_BYTES        = DT__LIMIT(1 << 20, 500), /* passed on at once */
    DT__H5_READ_BYTES         = DT__LIMIT(8 << 20, 1), /* per request; at least a row */
    /* text */
    DT__LINES_BYTES           = DT__LIMIT(1 << 18, 1), /* read at once */
    DT__UNPACK_BYTES          = DT__LIMIT(1 << 17, 7), /* an unpacker's input and output */
    DT__DICT_SLOTS            = DT__LIMIT(64, 2), /* of a new dictionary; doubled */
    /* data */
    DT__TYPED_BYTES           = DT__LIMIT(1 << 18, 1), /* of rows at once; at least a row */
    DT__IDX_BYTES             = DT__LIMIT(1 << 16, 8), /* of numbers converted at once */
    DT__IDX_LABELS            = DT__LIMIT(1024, 3), /* rows at once */
    DT__H5_LABELS             = DT__LIMIT(1024, 3), /* rows at once; one-hot rows are wide */
    DT__MARK_BYTES            = DT__LIMIT(1 << 17, 50), /* between stored starting points */
    DT__OPEN_FILES            = DT__LIMIT(8, 1), /* per reader of rows */
    DT__SIFTED_ROWS           = DT__LIMIT(256, 7), /* at once, some of them held out */
    DT__HELD_OUT_ROWS         = DT__LIMIT(4096, 64), /* covered by one count */
    DT__LOAD_BYTES            = DT__LIMIT(16 << 20, 1000), /* between checks for a stop */
    DT__SHUFFLE_BYTES         = DT__LIMIT(1 << 18, 1), /* a bucket's buffer; at least a row */
    DT__SHARD_BYTES           = DT__LIMIT(1 << 20, 1000), /* at once; at least a row */
    /* model */
    DT__SORT_BITS             = DT__LIMIT(11, 1), /* per pass; counts stay in the cache */
    DT__DROPOUT_BLOCKS        = DT__LIMIT(64, 1), /* of random bits at once */
    DT__BIAS_BLOCK            = DT__LIMIT(64, 3), /* columns; sums stay in registers */
    DT__NORM_BLOCK            = DT__LIMIT(64, 3), /* channels; sums stay in the cache */
    DT__ACTIVATION_BLOCK      = DT__LIMIT(256, 3), /* values */
    DT__TILE_VALUES           = DT__LIMIT(1 << 15, 1 << 11), /* measured: model/bf16_products.c */
    DT__TILE_COLUMNS          = DT__LIMIT(1 << 10, 1 << 6),
    /* comm */
    DT__MPI_CHUNK             = DT__LIMIT(64 << 20, 4000), /* bytes per call, as counts are int */
    DT__CHUNK                 = DT__LIMIT(15 << 10, 250), /* floats; below TCP's eager limit */
    DT__SLICE_CHUNKS          = DT__LIMIT(64, 3), /* upper bound per slice */
    DT__LEAST_SLICE           = DT__LIMIT(1024, 16), /* floats; fewer are not divided */
    DT__LEAST_NODE_SLICE      = DT__LIMIT(256, 32), /* floats; the same for nodes */
    DT__ASKS_RADIX            = DT__LIMIT(16, 2), /* 15 messages a round: comm/exchange.h */
    DT__STREAM_CHUNKS         = DT__LIMIT(16, 1), /* in flight at once */
    DT__ASYNC_BLOCK           = DT__LIMIT(8192, 256), /* floats; they stay in the L2 cache */
    DT__ASYNC_PROGRESS_BLOCKS = DT__LIMIT(32, 1), /* between checks for messages */
    DT__ASYNC_AT_ONCE         = DT__LIMIT(64, 2), /* gradients applied in one pass */
    /* updates that are not recorded yet. A rank that fills the log waits, and its next gradient
     * is of older weights. A single worker must never fill it: tests know its bits */
    DT__ASYNC_LOG             = DT__LIMIT(1024, 256),
    DT__ASYNC_RECORDS         = DT__LIMIT(64, 1), /* read at once */
    /* state, report */
    DT__VERIFY_BYTES          = DT__LIMIT(1 << 18, 512), /* read at once for the checksum */
    DT__RECORDS_TAIL_BYTES    = DT__LIMIT(4096, 7), /* searched at once for the last line */
    DT__RECORDS_COPY_BYTES    = DT__LIMIT(1 << 14, 7),
    DT__RECORDS_READ_BYTES    = DT__LIMIT(1 << 20, 7), /* at once; more for a longer line */
    /* predict */
    DT__BODY_BYTES            = DT__LIMIT(64 << 10, 1) /* initial buffer of a request's body */
};
/* clang-format on */

#endif
