/* Waiting for other ranks, for as long as the program lets. */
#ifndef RUNTIME_MPI_WAITING_H
#define RUNTIME_MPI_WAITING_H

#include <mpi.h>
#include <stdbool.h>

/* Looks until `look(at)` is true. When the program's timeout is over all processes end; `what` is reported. */
void rt_wait_until(bool (*look)(void *at), void *at, const char *what);

/* Waits until a collective has ended. */
void rt_mpi_wait(MPI_Request *request, const char *what);

/* Ends all processes when a call of MPI has failed; `what` names it. */
void rt_mpi_check(int code, const char *what);

#endif
