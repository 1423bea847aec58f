/* world: the processes that train together. Rank 0 keeps the weights and writes the run directory;
 * the others compute. */
#ifndef DTRAIN_WORLD_H
#define DTRAIN_WORLD_H

#include "dtrain/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct dt_world;

/* Starts MPI; the world is all processes of the job. Collective over the job.
 * DT_EUSAGE: MPI has begun already; or several processes of a job that MPI sees as jobs of one. */
dt_status dt_world_create(struct dt_world **out);

/* Makes a world of the ranks of a communicator, for a program with its own MPI_Init_thread
 * (MPI_THREAD_FUNNELED or more). mpi_comm points to the MPI_Comm, of which a copy is used.
 * stall_secs: seconds without progress after which the watchdog ends the job during this call; 0:
 * never. Between trainings nothing is watched.
 * Collective over the communicator; fails on all its ranks or on none. DT_EUSAGE: MPI has not
 * begun, or has ended. Errors of MPI, and the watchdog, end the whole program by MPI_Abort. */
dt_status dt_world_attach(const void *mpi_comm, double stall_secs, struct dt_world **out);
/* Makes a world of a communicator of Fortran; see dt_world_attach. */
dt_status dt_world_attach_fortran(int comm, double stall_secs, struct dt_world **out);

/* Ends the world, and MPI if dt_world_create started it; else call it before MPI_Finalize.
 * Collective over the world. */
void dt_world_destroy(struct dt_world *world);

int dt_world_rank(const struct dt_world *world); /* of this process, from 0 */
int dt_world_size(const struct dt_world *world);

#ifdef __cplusplus
}
#endif

#endif
