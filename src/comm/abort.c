/* The end of the job: one error line, then MPI_Abort. */
#include <stdlib.h>
#include <string.h>

#include "comm/world.h"

/* An abort may end the other ranks at once (Hydra): print the error line first. */
void dt__world_die(int exit_code, enum dt__cause cause, const char *message)
{
    const double PRINT_SECS = 2;
    char place[DT__PLACE], word[16];
    const bool prints = dt__error_claim(place);
    if (prints) {
        dt__log_progress(NULL);
        dt__cause_prefix(cause, word);
        fprintf(stderr, "dtrain: error: %s%s%s\n", place, word, message);
        dt__error_mark_printed();
    }
    fflush(NULL);
    if (!prints) dt__error_await(PRINT_SECS);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    abort();
}

bool dt__world_claim_error(struct dt_world *world)
{
    char place[DT__PLACE];
    (void)world;
    return dt__error_claim(place);
}

void dt__world_abort(struct dt_world *world, dt_status status)
{
    (void)world;
    dt__world_die(dt_status_exit_code(status), DT__CAUSE_NONE, dt_error_text());
}

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
    char text[MPI_MAX_ERROR_STRING], message[DT_ERROR_MAX];
    snprintf(message, sizeof message, "%s:%d: %s: %s", file, line, call, dt__mpi_text(code, text));
    dt__world_die(1, DT__CAUSE_MPI, message);
}
