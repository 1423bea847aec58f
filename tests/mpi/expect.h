/* Expectations on every rank: EXPECT(what, format, ...) counts failures and prints the first
 * few. */
#ifndef DTRAIN_TESTS_MPI_EXPECT_H
#define DTRAIN_TESTS_MPI_EXPECT_H

#include <stdio.h>
#include <stdlib.h>

static int failures;

#define EXPECT(what, ...)                                                                          \
    do {                                                                                           \
        if (!(what) && failures++ < 20) {                                                          \
            const char *rank_text = getenv("OMPI_COMM_WORLD_RANK");                                \
            if (!rank_text) rank_text = getenv("PMI_RANK");                                        \
            fprintf(stderr, "rank %s: %s:%d: %s: ", rank_text ? rank_text : "0", __FILE__,         \
                    __LINE__, #what);                                                              \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

#endif
