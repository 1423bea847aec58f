/* SMPI (3.32, and 4.1): a request that MPI_Test found ended is kept forever, and makes each later
 * wait slower.
 *
 * ActivityImpl::test calls finish() without a simcall in the list of waiting actors; but only for
 * these does CommImpl::finish remove the communication from the actor's activities_. Each wait
 * walks that list. Prints the seconds for a number of messages that are waited for, before and
 * after the same number of tested ones: they should be equal.
 *   smpicc tested.c -o tested && smpirun -platform P -hostfile H -np 2 ./tested */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

#undef clock_gettime /* the machine's time, not the simulator's */

enum { MESSAGES = 20000 };

static double real_secs(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double receive(int test)
{
    const double start = real_secs();
    for (int i = 0, value, done; i < MESSAGES; i++) {
        MPI_Request request;
        MPI_Irecv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
        if (!test) MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (done = !test; !done;)
            MPI_Test(&request, &done, MPI_STATUS_IGNORE); /* takes simulated time */
    }
    return real_secs() - start;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 3; turn++) {
        if (rank == 0)
            printf("%d messages, %s: %.2f s\n", MESSAGES, turn == 1 ? "tested" : "waited for",
                   receive(turn == 1));
        for (int i = 0, value = 0; i < MESSAGES && rank == 1; i++)
            MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
