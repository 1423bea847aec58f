/* Messages of ranks over simulated links (links.cpp), for sim.c. */
#ifndef LINKS_H
#define LINKS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A send or a receive; it stays where it is. */
struct message {
    bool is_send;
    int from, to, tag, comm; /* ranks of all; messages match that have all four */
    void *bytes;
    size_t length;
    bool ended;
};

/* This rank begins, on the host on which it is. */
void links_join(int rank);
void links_start(struct message *message);
/* Sleeps until a message has ended since the last sleep, or for this many seconds; below 0:
 * forever. */
void links_sleep(int rank, double secs);
/* Sleeps until another rank of the host wakes the waiting ranks, or for this many seconds. If no
 * message has been sent or received for long, prints what all ranks wait for, and ends the
 * program. */
void links_wait_here(int rank, double secs);
void links_wake_here(int rank);

#ifdef __cplusplus
}
#endif
#endif
