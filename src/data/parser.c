/* The words of a record: adds words, and converts the cells of a table to words. */
#include "data/parser.h"

#include <math.h>
#include <string.h>

#include "table/header.h"
#include "table/values.h"

dt_status dt__parser_add(struct dt__parser *parser, uint32_t word)
{
    DT_TRY(dt__grow(&parser->words, &parser->capacity, parser->count + 1, sizeof *parser->words,
                    "row"));
    parser->words[parser->count++] = word;
    return DT_OK;
}

dt_status dt__parser_begin(struct dt__parser *parser)
{
    while (parser->count < parser->columns->count + parser->further_targets)
        DT_TRY(dt__parser_add(parser, 0));
    return DT_OK;
}

dt_status dt__parser_take(struct dt__parser *parser, int32_t role, struct dt__cell cell)
{
    struct dt__columns *columns = parser->columns;
    struct dt__column *column = role >= 0 ? &columns->items[role] : NULL;
    if (column) {
        DT_TRY(dt__cell_word(columns, (size_t)role, cell.text, cell.length, &parser->words[role]));
        column->unknown += column->kind == DT_COLUMN_CATEGORY && !columns->learning &&
                           !columns->hash_bits && parser->words[role] == column->dict.count;
        return DT_OK;
    }
    if (role == DT__ROLE_LABEL) parser->label = cell;
    if (role == DT__ROLE_WEIGHT) parser->weight = cell;
    if (role == DT__ROLE_GROUP) parser->group = cell;
    const size_t further = role < DT__ROLE_LABEL ? (size_t)(DT__ROLE_LABEL - role) : 0;
    if (!further || further > parser->further_targets) return DT_OK;
    float target;
    DT_TRY(dt__target_read(parser->targets, &cell, &target));
    memcpy(&parser->words[columns->count + further - 1], &target, sizeof target);
    return DT_OK;
}

void dt__parser_end(struct dt__parser *parser)
{
    struct dt__columns *columns = parser->columns;
    columns->rows += columns->learning;
    parser->entries = columns->entries;
    for (size_t c = 0; c < columns->count && !parser->has_floats; c++)
        parser->has_floats =
            columns->items[c].kind == DT_COLUMN_DATE ||
            (columns->items[c].kind != DT_COLUMN_CATEGORY &&
             columns->items[c].kind != DT__COLUMN_OPEN && /* no value has been present yet */
             !dt__floats_are_bytes((const float *)&parser->words[c], 1));
}
