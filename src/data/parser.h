/* A parser: the state of a pass over a file of text, and the words of its last record. */
#ifndef DATA_PARSER_H
#define DATA_PARSER_H

#include "table/labels.h"

struct dt__columns;
struct dt__header;

/* Turns the records of a file into typed rows. */
struct dt__parser {
    struct dt__columns *columns;     /* CSV */
    const struct dt__header *header; /* of a table: the roles of the file's columns */
    struct dt__cell *cells;          /* JSON: (header->cells.count) of the record */
    struct dt_text *scratch;         /* JSON: for a reader */
    uint32_t features;               /* LIBSVM: greater indices are left out; 0: count the
                                      * features */
    uint64_t widest;                 /* LIBSVM: greatest index of any row so far */
    uint64_t bytes;  /* LIBSVM: size of all the data, an upper bound of a plausible index; 0 for a
                      * pipe */
    uint32_t *words; /* (count) of the last record; further targets follow those of columns */
    size_t count, capacity;
    struct dt__cell label, weight; /* texts of the last record; empty if there is none */
    struct dt__cell group, time;   /* texts of the row's keys; empty if there is none */
    const struct dt_targets *of;   /* kind of further labels ... */
    size_t more;                   /* ... and their number */
    size_t entries;                /* sparse entries of the last record */
    bool floats, values;           /* seen in any record: a value that is no byte, an entry that is
                                    * not 1 */
};
/* Adds a word to the row. */
dt_status dt__parser_add(struct dt__parser *parser, uint32_t word);
/* Adds a row of a table: _begin reserves its words, _take takes each cell by the role of its
 * column, and _end ends it. DT_EFORMAT: the cell has no value of its column's kind. */
dt_status dt__parser_begin(struct dt__parser *parser);
dt_status dt__parser_take(struct dt__parser *parser, int32_t role, struct dt__cell cell);
void dt__parser_end(struct dt__parser *parser);

#endif
