/* A server of pages on this machine alone: HTTP/1.1 on 127.0.0.1, by libmicrohttpd. A build without that library has
 * gen/without/server.c instead.
 *
 * It answers GET and HEAD of browsers that name it 127.0.0.1 or localhost, so that no page of a network can read it by
 * a name of its own that leads here. It opens no file: what is not an answer of its caller is not there. */
#ifndef ACCEL_SERVER_SERVER_H
#define ACCEL_SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/problem.h"

/* What is at a path. */
struct server_answer {
  const char *type;  /* "text/html; charset=utf-8"; NULL: there is nothing */
  const char *bytes; /* `length` of them, until the next call */
  size_t length;
};

/* Fills an answer, which is empty, for a path such as "/". */
typedef void server_source(void *context, const char *path, struct server_answer *answer);

/* Listens on a port of 127.0.0.1, and sets *port, where it is 0, to one that was free. The socket; -1 with a problem.
 */
int server_open(int *port, struct problem *problem);

/* Answers until SIGINT, SIGTERM or SIGHUP comes, and closes the socket. False with a problem. */
bool server_run(int socket, server_source *source, void *context, struct problem *problem);

#endif
