/* A parser: the state while one file of text is parsed, and the words of the last record. */
#ifndef DATA_PARSER_H
#define DATA_PARSER_H

#include "table/labels.h"

struct dt__columns;
struct dt__header;

struct dt__parser {
    struct dt__columns *columns;     /* the features of a table */
    const struct dt__header *header; /* CSV, JSON: the roles of the file's columns */
    struct dt__cell *cells;          /* JSON: (header->cells.count) cells of the record */
    struct dt_text *scratch;         /* JSON: holds decoded texts */
    uint32_t features;               /* LIBSVM: greater indices are ignored; 0: no limit */
    uint64_t widest;                 /* LIBSVM: greatest index in any row so far */
    uint64_t bytes;                  /* LIBSVM: size of all files, which limits plausible indices;
                                      * 0: a pipe */
    uint32_t *words;                 /* (count) the last record. CSV, JSON: one word per column,
                                      * then the further targets; LIBSVM: two per entry */
    size_t count, capacity;
    struct dt__cell label, weight;    /* of the last record; empty if there is none */
    struct dt__cell group, time;      /* of the last record; empty if there is none */
    const struct dt_targets *targets; /* what the loss accepts as targets */
    size_t further_targets;           /* number of targets after the first */
    size_t entries;                   /* sparse entries of the last record */
    bool has_floats;                  /* some record had a value that is no integer in 0..255 */
    bool has_values;                  /* some record had an entry that is not 1 */
};

/* Adds a word to the record. DT_EMEMORY. */
dt_status dt__parser_add(struct dt__parser *parser, uint32_t word);
/* Starts a record of a table: reserves its words. */
dt_status dt__parser_begin(struct dt__parser *parser);
/* Stores a cell according to `role`, the role of its column. DT_EFORMAT: the cell is not a value of
 * its column's kind. */
dt_status dt__parser_take(struct dt__parser *parser, int32_t role, struct dt__cell cell);
/* Ends a record of a table: updates the counts and kinds of values. */
void dt__parser_end(struct dt__parser *parser);

#endif
