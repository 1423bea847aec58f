/* Touched rows between groups: every leader sends the rows of its group's parts, numbers and sums, to all others.
 *
 * A message is a list of row numbers, or of the floats of these rows, in pieces of DT__MPI_CHUNK bytes. Who receives
 * does not know how many rows there will be, but has room for all: it asks for the most, and sees from the messages'
 * lengths how many came. Numbers need no message ahead, then, and the exchange takes one latency. Pieces beyond the
 * last row are empty.
 *
 * Receives begin when the own group has summed its rows: by then all its workers have made the updates of the step
 * before, and read the places where rows arrive no more. */
#include <string.h>

#include "comm/reducer.h"

/* What a request carries: floats or row numbers of a part's range, from a place on. */
struct piece {
    int part, range;
    bool numbers;
    size_t from; /* the first of its numbers or floats */
};

struct dt__rows_exchange {
    MPI_Comm comm;
    struct piece *piece; /* (foreign) that come in, and behind them those of a part of this group */
    int foreign, own;
    MPI_Request *request; /* (foreign) persistent ones, then (own, groups - 1) of this step */
    int *index;           /* (requests) those that have ended, of one look */
    MPI_Status *status;   /* likewise */
    int requests;
    bool started;
    int left; /* requests that have not ended, once started */
};

enum { MOST = DT__MPI_CHUNK / sizeof(float) }; /* of a piece */

/* ---- create --------------------------------------------------------------------------------- */

/* Pieces of all lists of parts of this group, or of others; out: NULL, to count them. */
static int list_pieces(const struct dt_reducer *x, bool own, struct piece *out)
{
    int pieces = 0;
    for (int p = 0; p < x->parts; p++) {
        if ((x->part[p].group == x->group_index) != own) continue;
        for (int i = 0; i < x->spec.row_ranges; i++)
            for (int numbers = 1; numbers >= 0; numbers--) {
                const struct dt_row_range *range = &x->spec.row_range[i];
                const size_t most = range->rows * (numbers ? 1 : range->width);
                for (size_t from = 0; from < most; from += MOST, pieces++)
                    if (out) out[pieces] = (struct piece){p, i, numbers, from};
            }
    }
    return pieces;
}

dt_status dt__rows_exchange_create(struct dt_reducer *x, struct dt__rows_exchange **out)
{
    struct dt__rows_exchange *e;
    DT_TRY(dt_alloc(1, sizeof *e, "touched rows", &e));
    *out = e;
    e->comm = MPI_COMM_NULL;
    e->foreign = list_pieces(x, false, NULL);
    e->own = list_pieces(x, true, NULL);
    e->requests = e->foreign + e->own * (x->groups - 1);
    DT_TRY(dt_alloc((size_t)(e->foreign + e->own), sizeof *e->piece, "touched rows", &e->piece));
    DT_TRY(dt_alloc((size_t)e->requests, sizeof *e->index, "touched rows", &e->index));
    DT_TRY(dt_alloc((size_t)e->requests, sizeof *e->status, "touched rows", &e->status));
    DT_TRY(dt_alloc((size_t)e->requests, sizeof *e->request, "touched rows", &e->request));
    list_pieces(x, false, e->piece);
    list_pieces(x, true, e->piece + e->foreign);
    for (int i = 0; i < e->requests; i++)
        e->request[i] = MPI_REQUEST_NULL;
    return DT_OK;
}

void dt__rows_exchange_connect(struct dt_reducer *x, struct dt__rows_exchange *e)
{
    DT_MPI(MPI_Comm_dup(x->leaders, &e->comm));
    for (int i = 0; i < e->foreign; i++) {
        const struct piece piece = e->piece[i];
        const struct dt_row_range *range = &x->spec.row_range[piece.range];
        float *rows;
        const struct dt_touched list = dt__rows_of_part(x, piece.part, piece.range, &rows);
        const size_t left = range->rows * (piece.numbers ? 1 : range->width) - piece.from;
        void *to = piece.numbers ? (void *)(list.row + piece.from) : rows + piece.from;
        DT_MPI(MPI_Recv_init(to, (int)(left < MOST ? left : MOST), piece.numbers ? MPI_UINT32_T : MPI_FLOAT,
                             x->part[piece.part].group, 0, e->comm, &e->request[i]));
    }
}

void dt__rows_exchange_destroy(struct dt__rows_exchange *e)
{
    if (!e) return;
    for (int i = 0; e->request && i < e->foreign; i++)
        if (e->request[i] != MPI_REQUEST_NULL) DT_MPI(MPI_Request_free(&e->request[i]));
    if (e->comm != MPI_COMM_NULL) DT_MPI(MPI_Comm_free(&e->comm));
    dt_free(e->piece);
    dt_free(e->index);
    dt_free(e->status);
    dt_free(e->request);
    dt_free(e);
}

/* ---- a step --------------------------------------------------------------------------------- */

void dt__rows_exchange_begin(struct dt__rows_exchange *e)
{
    e->started = false;
}

/* Groups send to those that follow them first, so that not all send to the same one. */
static void exchange_start(struct dt_reducer *x, struct dt__rows_exchange *e)
{
    int r = e->foreign;
    dt__rows_close_parts(x);
    for (int i = 0; i < e->foreign; i++) {
        const struct piece *piece = &e->piece[i];
        float *rows;
        if (piece->numbers) *dt__rows_of_part(x, piece->part, piece->range, &rows).count = 0;
        DT_MPI(MPI_Start(&e->request[i]));
    }
    for (int i = e->foreign; i < e->foreign + e->own; i++) {
        const struct piece *piece = &e->piece[i];
        float *rows;
        struct dt_touched list = dt__rows_of_part(x, piece->part, piece->range, &rows);
        const size_t all = *list.count * (piece->numbers ? 1 : x->spec.row_range[piece->range].width);
        const size_t left = all > piece->from ? all - piece->from : 0;
        const void *from = piece->numbers ? (const void *)(list.row + piece->from) : rows + piece->from;
        for (int g = 1; g < x->groups; g++)
            DT_MPI(MPI_Isend(from, (int)(left < MOST ? left : MOST),
                             piece->numbers ? MPI_UINT32_T : MPI_FLOAT, (x->group_index + g) % x->groups, 0,
                             e->comm, &e->request[r++]));
    }
    e->started = true;
    e->left = e->requests;
}

bool dt__rows_exchange_advance(struct dt_reducer *x, struct dt__rows_exchange *e)
{
    int count;
    if (!e->started) {
        for (int b = 0; b < x->spec.buckets; b++)
            if (dt__rows_are_in(x, b) &&
                !dt__event_reached(&x->control->bucket[b].summed, dt__group_all(x)))
                return false;
        exchange_start(x, e);
        return true;
    }
    if (!e->left) return false;
    DT_MPI(MPI_Testsome(e->requests, e->request, &count, e->index, e->status));
    if (count == MPI_UNDEFINED || count == 0) return false;
    e->left -= count;
    for (int i = 0; i < count; i++) {
        const struct piece *piece = &e->piece[e->index[i] < e->foreign ? e->index[i] : 0];
        float *rows;
        int numbers;
        if (e->index[i] >= e->foreign || !piece->numbers) continue;
        DT_MPI(MPI_Get_count(&e->status[i], MPI_UINT32_T, &numbers));
        *dt__rows_of_part(x, piece->part, piece->range, &rows).count += (uint32_t)numbers;
    }
    return true;
}

bool dt__rows_exchange_done(const struct dt__rows_exchange *e)
{
    return e->started && e->left == 0;
}
