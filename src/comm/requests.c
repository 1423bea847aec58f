/* The list of pending MPI requests. */
#include "comm/requests.h"

#include "comm/world.h"

MPI_Request *dt__request_add(struct dt__requests *r, int *left)
{
    size_t capacity[] = {r->capacity, r->capacity, r->capacity}, need = (size_t)r->count + 1;
    dt_status status = dt__grow(&r->request, &capacity[0], need, sizeof *r->request, "requests");
    if (!status) status = dt__grow(&r->left, &capacity[1], need, sizeof *r->left, "requests");
    if (!status) status = dt__grow(&r->index, &capacity[2], need, sizeof *r->index, "requests");
    if (status) dt__world_abort(r->world, status);
    r->capacity = capacity[0];
    r->left[r->count] = left;
    ++*left;
    return &r->request[r->count++];
}

bool dt__requests_advance(struct dt__requests *r)
{
    const int before = r->count;
    int ended;
    if (!r->count) return false;
    DT_MPI(MPI_Testsome(r->count, r->request, &ended, r->index, MPI_STATUSES_IGNORE));
    if (ended <= 0) return false; /* or MPI_UNDEFINED */
    r->count = 0;
    for (int i = 0; i < before; i++) {
        if (r->request[i] == MPI_REQUEST_NULL) {
            --*r->left[i];
            continue;
        }
        r->request[r->count] = r->request[i];
        r->left[r->count++] = r->left[i];
    }
    return true;
}

void dt__requests_free(struct dt__requests *r)
{
    dt_free(r->request);
    dt_free(r->left);
    dt_free(r->index);
    *r = (struct dt__requests){.comm = MPI_COMM_NULL};
}

void dt__message_begin(struct dt__requests *r, int *left, const void *bytes, size_t length,
                       struct dt__envelope to)
{
    for (size_t at = 0; at < length; at += to.most) {
        const int n = (int)(length - at < to.most ? length - at : to.most);
        char *part = (char *)(uintptr_t)bytes + at;
        MPI_Request *request = dt__request_add(r, left);
        if (to.sends)
            DT_MPI(MPI_Isend(part, n, MPI_BYTE, to.rank, to.tag, r->comm, request));
        else
            DT_MPI(MPI_Irecv(part, n, MPI_BYTE, to.rank, to.tag, r->comm, request));
    }
}
