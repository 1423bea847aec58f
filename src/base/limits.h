/* Every size by which the sources cut their work: blocks, strips, chunks, buffers, tiles, first sizes of tables.
 *
 * Results do not depend on any of them, so `make tiny` (DT_TINY) builds with the right column, where each is at its
 * least, and all tests pass with the same answers: what is wrong in the second turn of a loop, at the edge of a
 * block, or where a table grows, shows on tests' small data. New sizes belong here. Times beside a size say why it
 * is what it is; those without one are anything that costs little memory and few calls.
 *
 * Constants that stay where they are used:
 * - part of results' bits: the 256 rows of an evaluation's chunk, of statistics' blocks and of samples; the chunks
 *   and windows of the order of rows; the slices of 4,096 rows of a share; lanes of sums; groups of a softmax; blocks
 *   of a norm and of a sum over replicas; blocks of q8; pictures that a convolution takes at once, whose library has
 *   other kernels for other numbers;
 * - part of a file's or a protocol's format: pages, chunks and pieces of texts in HDF5, the lanes of a checksum
 *   (its tables are of their length), the layout of packed weights, tags, what a signature is looked for in;
 * - of the machine: pages, cache lines, vectors, how far ahead memory is fetched;
 * - bounds of what is taken, shown or kept (longest row, most classes, events of a trace): another bound is another
 *   answer. That of all requests' bodies together stands here: nothing else could reach it in a test. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#ifdef DT_TINY
#define DT__LIMIT(normal, tiny) (tiny)
#else
#define DT__LIMIT(normal, tiny) (normal)
#endif

enum {
    /* base */
    DT__WRITE_BYTES = DT__LIMIT(8 << 20, 1000), /* a call; the disk works on each while the next is copied */
    DT__READ_BYTES = DT__LIMIT(64 << 20, 1000), /* a call */
    DT__READ_TEXT_BYTES = DT__LIMIT(1 << 14, 7), /* a call, of a file whose length is not known */
    DT__RNG_LANES = DT__LIMIT(32, 2),            /* blocks of random bits side by side, in vectors */

    /* hdf5 */
    DT__H5_WRITE_BYTES = DT__LIMIT(1 << 20, 100), /* of data handed on at once */
    DT__H5_READ_BYTES = DT__LIMIT(8 << 20, 100),  /* of rows that the reader process is asked for at once */

    /* data */
    DT__LINES_BYTES = DT__LIMIT(1 << 18, 1),  /* of text read at once */
    DT__UNPACK_BYTES = DT__LIMIT(1 << 17, 7), /* of a packed file, in and out */
    DT__IDX_BYTES = DT__LIMIT(1 << 16, 8),    /* of numbers that are converted at once */
    DT__IDX_LABELS = DT__LIMIT(1024, 3),      /* rows */
    DT__H5_LABELS = DT__LIMIT(1024, 3),       /* rows; one-hot ones are as wide as there are classes */
    DT__DICT_SLOTS = DT__LIMIT(64, 2),        /* of a new dictionary; doubled as it fills */
    DT__MARK_BYTES = DT__LIMIT(1 << 17, 50),  /* between places in a text file where reading can start */
    DT__OPEN_FILES = DT__LIMIT(8, 1),         /* of one reader of rows */
    DT__SIFTED_ROWS = DT__LIMIT(256, 3),      /* read at once, where some are held out */
    DT__HELD_OUT_ROWS = DT__LIMIT(4096, 64),  /* that one count of held-out rows stands for */
    DT__LOAD_BYTES = DT__LIMIT(16 << 20, 1),  /* of rows between two looks for a stop */
    DT__SHUFFLE_BYTES = DT__LIMIT(1 << 18, 1), /* of a bucket's buffer; one row at least */
    DT__SHARD_BYTES = DT__LIMIT(1 << 20, 1),   /* of rows that are read or written at once; one row at least */

    /* model */
    DT__SORT_BITS = DT__LIMIT(11, 1),       /* of a pass at most: its counts stay in the first cache */
    DT__DROPOUT_BLOCKS = DT__LIMIT(64, 1),  /* of random bits at once */
    DT__BIAS_STRIP = DT__LIMIT(64, 3),      /* columns whose sums stay in registers */
    DT__NORM_STRIP = DT__LIMIT(64, 3),      /* channels whose sums stay in registers and the nearest cache */
    DT__ACTIVATION_STRIP = DT__LIMIT(256, 3), /* values of a layer that is an activation alone */
    /* Tiles of a weight gradient from bf16: src/model/bf16_products.c says what was measured. */
    DT__TILE_VALUES = DT__LIMIT(1 << 15, 1 << 11),
    DT__TILE_COLUMNS = DT__LIMIT(1 << 10, 1 << 6),

    /* comm */
    DT__MPI_CHUNK = DT__LIMIT(64 << 20, 4000), /* bytes of a call: counts are int, and transports copy whole messages */
    DT__CHUNK = DT__LIMIT(15 << 10, 250),      /* floats a message between hosts: 60 KiB, below TCP's eager limit */
    DT__SLICE_CHUNKS = DT__LIMIT(64, 3),       /* that a slice is cut into at most */
    DT__STREAM_CHUNKS = DT__LIMIT(16, 1),      /* under way at once */
    /* Floats that async updates at once: with weights, gradients and optimizer state they stay in a core's
     * second-level cache. */
    DT__ASYNC_BLOCK = DT__LIMIT(8192, 256),
    DT__ASYNC_PROGRESS_BLOCKS = DT__LIMIT(32, 1), /* between two looks for messages */
    DT__ASYNC_AT_ONCE = DT__LIMIT(64, 2),         /* gradients applied in one pass over the vectors */
    DT__ASYNC_LOG = DT__LIMIT(1024, 1),           /* updates that are not yet recorded */
    DT__ASYNC_RECORDS = DT__LIMIT(64, 1),         /* of them, read at once */
    DT__DIFFERENCE_BLOCKS = DT__LIMIT(4, 1),      /* of q8, of a difference of weights, on the stack */

    /* state, report */
    DT__VERIFY_BYTES = DT__LIMIT(1 << 18, 512),  /* of a checkpoint, for its checksum */
    DT__RECORDS_TAIL_BYTES = DT__LIMIT(4096, 7), /* in which the last whole line is looked for */
    DT__RECORDS_COPY_BYTES = DT__LIMIT(1 << 14, 7),

    /* predict */
    DT__PREDICT_BYTES = DT__LIMIT(64 << 20, 64),  /* of inputs that are computed at once; one row at least */
    DT__BODIES_BYTES = DT__LIMIT(256 << 20, 1 << 21) /* of all requests that wait */
};

#endif
