/* Connections with a time to wait. */
#ifndef RUNTIME_TCP_SOCKET_H
#define RUNTIME_TCP_SOCKET_H

#include "runtime/base/problem.h"

#include <stddef.h>

/* Listens at an address of this machine, or, where `host` is none of its own, at all of them; the socket, or -1. */
int rt_listen(const char *host, const char *port, struct problem *problem);

/* Connects, trying again until `deadline` of rt_now: the other side may start later. -1: it did not come to be. */
int rt_connect(const char *host, const char *port, double deadline, struct problem *problem);

/* The next connection, or -1 where none came by the deadline. */
int rt_accept(int listening, double deadline);

/* Whole pieces: false when the other side has ended, or the deadline is over. */
bool rt_send_all(int socket, const void *bytes, size_t size, double deadline);
bool rt_receive_all(int socket, void *bytes, size_t size, double deadline);

#endif
