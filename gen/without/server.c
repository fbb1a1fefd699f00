#include "gen/server/server.h"

int server_open(int *port, struct problem *problem) {
  (void)port;
  rt_problem(problem, "this accel-gen was built without libmicrohttpd, and serves no pages");
  rt_help(problem, "write a page with -o, or install libmicrohttpd-dev and build again: sh tools/configure.sh "
                   "build/config && ninja");
  return -1;
}

bool server_run(int socket, server_source *source, void *context, struct problem *problem) {
  (void)socket;
  (void)source;
  (void)context;
  (void)problem;
  return false;
}
