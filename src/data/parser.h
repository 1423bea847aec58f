/* A parser: the state of a pass over a file of text, and the words of its last record. */
#ifndef DATA_PARSER_H
#define DATA_PARSER_H

#include "table/labels.h"

struct dt__columns;
struct dt__header;

/* What turns the records of a file into typed rows. */
struct dt__parser {
    struct dt__columns *columns;     /* CSV */
    const struct dt__header *header; /* of a table: which of the file's columns is what */
    struct dt__cell *cells;          /* JSON: (header->cells.count) of the record */
    struct dt_text *scratch;         /* JSON: for a reader */
    uint32_t features;               /* LIBSVM: greater indices are left out; 0: to be counted */
    uint64_t widest;                 /* LIBSVM: greatest index of any row so far */
    uint64_t bytes;  /* LIBSVM: of all the data, which bounds an index that counts; of a pipe 0 */
    uint32_t *words; /* (count) of the last record; behind those of columns are further targets */
    size_t count, room;
    struct dt__cell label, weight; /* its text; empty if there is none */
    struct dt__cell group, time;   /* likewise; of the row's keys */
    const struct dt_targets *of;   /* of further labels ... */
    size_t more;                   /* ... so many */
    size_t entries;                /* sparse ones of the last record */
    bool floats, values;           /* of all: a value that is no byte, an entry that is not 1 */
};
/* Adds a word to the row. */
dt_status dt__parser_add(struct dt__parser *parser, uint32_t word);
/* A row of a table: makes room for its words, takes each cell by the role of its column, and ends
 * it. DT_EFORMAT: what the cell says is none of its column's. */
dt_status dt__parser_begin(struct dt__parser *parser);
dt_status dt__parser_take(struct dt__parser *parser, int32_t role, struct dt__cell cell);
void dt__parser_end(struct dt__parser *parser);

#endif
