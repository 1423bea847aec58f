/* world: the processes that train together. Rank 0 keeps the weights and writes the run directory;
 * the others compute. */
#ifndef DTRAIN_WORLD_H
#define DTRAIN_WORLD_H

#include "dtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_world;

/* Starts MPI and makes a world of all processes of the job. A process can call it once.
 * Collective over the job.
 * DT_EUSAGE: MPI has started already; or the job has several processes, but each sees only itself,
 * because another MPI's mpirun started them. */
dt_status dt_world_create(struct dt_world **out);

/* Makes a world of the ranks of a communicator, for a program with its own MPI_Init_thread
 * (MPI_THREAD_FUNNELED or more).
 * Collective over the communicator; fails on all its ranks or on none.
 * mpi_comm: pointer to an MPI_Comm, which is duplicated. stall_secs: the watchdog ends the job
 * after this many seconds without progress in this call; 0: never. During a training the watchdog
 * obeys run.stall_secs; between trainings it is off.
 * DT_EUSAGE: MPI has not started, or has ended. Errors of MPI, and the watchdog, end the whole
 * program by MPI_Abort. */
dt_status dt_world_attach(const void *mpi_comm, double stall_secs, struct dt_world **out);
/* Like dt_world_attach, with a Fortran communicator (comm%MPI_VAL with mpi_f08). */
dt_status dt_world_attach_fortran(int comm, double stall_secs, struct dt_world **out);

/* Ends the world, and also MPI if dt_world_create made the world. Call it before MPI_Finalize if
 * dt_world_attach made the world. Collective over the world. NULL is fine. */
void dt_world_destroy(struct dt_world *world);

int dt_world_rank(const struct dt_world *world); /* rank of this process, from 0 */
int dt_world_size(const struct dt_world *world); /* number of ranks */

#ifdef __cplusplus
}
#endif

#endif
