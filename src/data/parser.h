/* A parser: state that lasts while one file of text is parsed, and the words of its last record. */
#ifndef DATA_PARSER_H
#define DATA_PARSER_H

#include "table/labels.h"

struct dt__columns;
struct dt__header;

/* Turns the records of a file into typed rows. */
struct dt__parser {
    struct dt__columns *columns;     /* the features of a table */
    const struct dt__header *header; /* of a table: the roles of the file's columns */
    struct dt__cell *cells;          /* JSON: (header->cells.count) cells of the record */
    struct dt_text *scratch;         /* JSON: holds decoded texts */
    uint32_t features;               /* LIBSVM: greater indices are ignored; 0: any index counts */
    uint64_t widest;                 /* LIBSVM: greatest index in any row so far */
    uint64_t bytes;                  /* LIBSVM: size of all files, a bound of plausible indices; 0:
                                      * a pipe */
    uint32_t *words;                 /* (count) the last record: a table's columns and further
                                      * targets, or LIBSVM's entries */
    size_t count, capacity;
    struct dt__cell label, weight;    /* of the last record; empty if there is none */
    struct dt__cell group, time;      /* of the last record; empty if there is none */
    const struct dt_targets *targets; /* what the loss accepts as targets */
    size_t further_targets;           /* number of targets after the first */
    size_t entries;                   /* sparse entries of the last record */
    bool has_floats, has_values;      /* in any record so far: a value that is not an integer in
                                       * 0..255; an entry that is not 1 */
};
/* Adds a word to the record. DT_EMEMORY. */
dt_status dt__parser_add(struct dt__parser *parser, uint32_t word);
/* Starts a record of a table: reserves its words. */
dt_status dt__parser_begin(struct dt__parser *parser);
/* Takes a cell, as the role of its column says. DT_EFORMAT: the cell is not a value of its column's
 * kind. */
dt_status dt__parser_take(struct dt__parser *parser, int32_t role, struct dt__cell cell);
/* Ends a record of a table. */
void dt__parser_end(struct dt__parser *parser);

#endif
