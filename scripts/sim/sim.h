/* Compiled into the program for a simulated cluster (make sim): the simulator (sim.c) replaces
 * time, sleep, waits and the end of a rank. */
#ifndef SIM_H
#define SIM_H

#include <mpi.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int sim_clock_gettime(clockid_t clock, struct timespec *out);
int sim_nanosleep(const struct timespec *span, struct timespec *left);
long sim_futex(long number, void *address, int operation, ...);
_Noreturn void sim_exit(int code);
void *sim_aligned_alloc(size_t alignment, size_t bytes);
void sim_free(void *memory);

int sim_init_thread(int *argc, char ***argv, int required, int *provided);
int sim_test(MPI_Request *request, int *done, MPI_Status *status);
int sim_testall(int count, MPI_Request *request, int *done, MPI_Status *status);
int sim_testsome(int count, MPI_Request *request, int *ended, int *index, MPI_Status *status);
int sim_iallreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request *request);
int sim_ireduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MPI_Request *request);
int sim_ibcast(void *bytes, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request *request);
int sim_ibarrier(MPI_Comm comm, MPI_Request *request);

#define clock_gettime sim_clock_gettime
#define nanosleep sim_nanosleep
#define syscall sim_futex
#define exit sim_exit
#define aligned_alloc sim_aligned_alloc
#define free sim_free
#define MPI_Init_thread sim_init_thread
#define MPI_Test sim_test
#define MPI_Testall sim_testall
#define MPI_Testsome sim_testsome
#define MPI_Iallreduce sim_iallreduce
#define MPI_Ireduce sim_ireduce
#define MPI_Ibcast sim_ibcast
#define MPI_Ibarrier sim_ibarrier
#define MPI_Win_sync(win) ((void)(win), MPI_SUCCESS) /* SMPI lacks it; all is one process */

#endif
