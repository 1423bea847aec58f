/* SMPI (3.32, and 4.1): MPI_Testsome reports a persistent request that was never started.
 *
 * MPI 3.1, 3.7.5: inactive requests are ignored; a list of such alone gives MPI_UNDEFINED. Seen: one
 * request has ended. (Request::testsome asks for MPI_REQ_FINISHED alone, where testany and wait look
 * at MPI_REQ_PREPARED too; Request::test then answers that what is prepared is done.)
 *   smpicc testsome.c -o testsome && smpirun -platform P -hostfile H -np 2 ./testsome */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, count, index, value = 0;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Recv_init(&value, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &request);
    MPI_Testsome(1, &request, &count, &index, MPI_STATUSES_IGNORE);
    if (rank == 0)
        printf("testsome: %s\n", count == MPI_UNDEFINED ? "right" : "FAULT: a request that was never started has ended");
    MPI_Request_free(&request);
    MPI_Finalize();
    return 0;
}
