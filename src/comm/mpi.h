/* MPI calls that are checked, and waits that sleep. The one place, with src/comm/[a-z]*.c, that sees mpi.h. */
#ifndef DT_COMM_MPI_H
#define DT_COMM_MPI_H

#include <mpi.h>

#include "dtrain/comm.h"

/* Wraps every MPI call: on failure prints call, place and MPI's own text, and ends the job. */
#define DT_MPI(call) dt__mpi_check((call), #call, __FILE__, __LINE__)
void dt__mpi_check(int code, const char *call, const char *file, int line);
/* MPI's own words for an error; into text, which is returned. */
const char *dt__mpi_text(int code, char text[MPI_MAX_ERROR_STRING]);

/* Most bytes of one MPI call: counts are int, and some transports copy whole messages. */
enum { DT__MPI_CHUNK = 64 << 20 };

/* A wait under way: short spin, then sleeps that grow; shown to the watchdog. */
struct dt__wait {
    struct dt_world *world;
    const char *what; /* is waited for */
    unsigned round;
    double nap_secs; /* of each pause; 0: a short spin, then sleeps that grow */
};
void dt__wait_init(struct dt__wait *wait, struct dt_world *world, const char *what);
/* Passes a little time. */
void dt__wait_pause(struct dt__wait *wait);
/* Call when something arrived: the back-off starts again. */
void dt__wait_progress(struct dt__wait *wait);
/* The wait is over. */
void dt__wait_done(struct dt__wait *wait);

/* Waits patiently for a request. */
void dt__request_finish(struct dt_world *world, MPI_Request *request, const char *what);

#endif
