#include "comm/mpi.h"

#include <stdio.h>
#include <stdlib.h>

#include "comm/world.h"

const char *dt__mpi_text(int code, char text[MPI_MAX_ERROR_STRING])
{
    int length;
    text[0] = '\0';
    MPI_Error_string(code, text, &length);
    return text;
}

void dt__mpi_check(int code, const char *call, const char *file, int line)
{
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING];
    fprintf(stderr, "dtrain: error: %s:%d: %s: %s\n", file, line, call, dt__mpi_text(code, text));
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

/* The back-off of a wait on MPI: rounds without sleep, about 100 us in all, then sleeps in microseconds
 * that stay short beside a message between hosts (500 us at 1 Gbit/s) and let an idle core rest. */
enum { SPIN_ROUNDS = 200, FIRST_SLEEP_US = 20, LAST_SLEEP_US = 200, TALK_ROUNDS = 64 };

void dt__wait_init(struct dt__wait *wait, struct dt_world *world, const char *what)
{
    *wait = (struct dt__wait){.world = world, .what = what};
}

void dt__wait_pause(struct dt__wait *wait)
{
    unsigned round = wait->round++;
    if (round == 0) dt__watch_wait(wait->world, wait->what);
    if (!wait->nap_secs && wait->world->spin && round < SPIN_ROUNDS) return;
    double us = FIRST_SLEEP_US + (double)(round > SPIN_ROUNDS ? round - SPIN_ROUNDS : 0) / 4;
    us = us < LAST_SLEEP_US ? us : LAST_SLEEP_US;
    dt_sleep_secs(wait->nap_secs > 0 ? wait->nap_secs : us * 1e-6);
    if (round % TALK_ROUNDS == 0) dt__watch_talk(wait->world);
}

void dt__wait_progress(struct dt__wait *wait)
{
    if (!wait->round) return;
    wait->round = SPIN_ROUNDS; /* more is to come, but not within a spin */
    dt__watch_wait(wait->world, wait->what);
}

void dt__wait_done(struct dt__wait *wait)
{
    if (wait->round) dt__watch_touch(wait->world);
    wait->round = 0;
}

void dt__request_finish(struct dt_world *world, MPI_Request *request, const char *what)
{
    struct dt__wait wait;
    dt__wait_init(&wait, world, what);
    for (int done = 0;;) {
        DT_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        if (done) break;
        dt__wait_pause(&wait);
    }
    dt__wait_done(&wait);
}
