/* SMPI (3.32, and 4.1): MPI_Testany never reports a small persistent send.
 *
 * A send of less than smpi/send-is-detached-thresh (65,536 bytes) has no separate action.
 * Request::testany skips requests without an action, whereas waitany treats them as ended. Next to
 * another pending request it is therefore never reported; MPI_Test reports it at once.
 *   smpicc testany.c -o testany && smpirun -platform P -hostfile H -np 2 ./testany */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, value = 1, never = 0, index = MPI_UNDEFINED, done = 0, tested = 0;
    MPI_Request request[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Send_init(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request[0]);
        MPI_Start(&request[0]);
        MPI_Irecv(&never, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request[1]);
        for (int i = 0; i < 1000 && !done; i++)
            MPI_Testany(2, request, &index, &done, MPI_STATUS_IGNORE);
        MPI_Test(&request[0], &tested, MPI_STATUS_IGNORE);
        printf("testany: %s\n",
               done || !tested ? "right" : "FAULT: a send that MPI_Test reports is not reported");
        MPI_Wait(&request[1], MPI_STATUS_IGNORE);
        MPI_Request_free(&request[0]);
    } else {
        MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_SELF);
        MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
