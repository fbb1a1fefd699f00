#define _DEFAULT_SOURCE
#include "runtime/tcp/socket.h"

#include "runtime/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Small messages go at once, and a machine that has vanished is noticed in about two minutes. */
static int prepared(int socket) {
  const int on = 1, idle = 60, interval = 10, probes = 6;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  return socket;
}

static struct addrinfo *resolve(const char *host, const char *port, int flags, struct problem *problem) {
  struct addrinfo *found = NULL, wish = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
  int error = getaddrinfo(host, port, &wish, &found);
  if (error == 0) return found;
  rt_problem(problem, "MASTER_ADDR %s, MASTER_PORT %s: %s", host != NULL ? host : "", port, gai_strerror(error));
  return NULL;
}

static int bound(const struct addrinfo *address) {
  const int on = 1;
  int made = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
  if (made < 0) return -1;
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(made, address->ai_addr, address->ai_addrlen) == 0 && listen(made, SOMAXCONN) == 0) return prepared(made);
  int error = errno;
  close(made);
  errno = error;
  return -1;
}

static int bound_to_any_of(const char *host, const char *port, struct problem *problem) {
  struct addrinfo *all = resolve(host, port, AI_PASSIVE, problem);
  int made = -1;
  if (all == NULL) return -2;
  for (const struct addrinfo *at = all; at != NULL && made < 0; at = at->ai_next) made = bound(at);
  int error = errno;
  freeaddrinfo(all);
  errno = error;
  return made;
}

int rt_listen(const char *host, const char *port, struct problem *problem) {
  int made = bound_to_any_of(host, port, problem);
  if (made == -1 && errno == EADDRNOTAVAIL) made = bound_to_any_of(NULL, port, problem);
  if (made >= 0) return made;
  if (made == -1) {
    rt_problem(problem, "rank 0 cannot listen at %s, port %s: %s", host, port, strerror(errno));
    rt_help(problem, "another run may use that port: set MASTER_PORT to a free one");
  }
  return -1;
}

/* Waits for a socket; false: the deadline is over. */
static bool wait_for(int socket, short events, double deadline) {
  struct pollfd waited = {socket, events, 0};
  for (;;) {
    double left = deadline - rt_now();
    if (left <= 0) return false;
    int ready = poll(&waited, 1, left > 1e6 ? 1000000000 : (int)(1e3 * left) + 1);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

/* Where nobody listens yet, the system may give the socket the very port that it connects to, and so itself. */
static bool is_at_both_ends(int socket) {
  struct sockaddr_storage own = {0}, other = {0};
  socklen_t own_size = sizeof own, other_size = sizeof other;
  return getsockname(socket, (struct sockaddr *)&own, &own_size) == 0 &&
         getpeername(socket, (struct sockaddr *)&other, &other_size) == 0 && own_size == other_size &&
         memcmp(&own, &other, own_size) == 0;
}

static int connected(const struct addrinfo *address, double deadline) {
  int error = 0;
  socklen_t size = sizeof error;
  int made = socket(address->ai_family, address->ai_socktype, address->ai_protocol);
  if (made < 0) return -1;
  prepared(made);
  bool done = connect(made, address->ai_addr, address->ai_addrlen) == 0 ||
              (errno == EINPROGRESS && wait_for(made, POLLOUT, deadline) &&
               getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0);
  if (done && !is_at_both_ends(made)) return made;
  close(made);
  errno = done ? ECONNREFUSED : error != 0 ? error : ETIMEDOUT;
  return -1;
}

int rt_connect(const char *host, const char *port, double deadline, struct problem *problem) {
  const struct timespec pause = {0, 50000000};
  double patience = deadline - rt_now();
  int made = -1;
  do {
    struct addrinfo *all = resolve(host, port, 0, problem);
    if (all == NULL) return -1;
    for (const struct addrinfo *at = all; at != NULL && made < 0; at = at->ai_next) made = connected(at, deadline);
    int error = errno;
    freeaddrinfo(all);
    if (made >= 0) return made;
    nanosleep(&pause, NULL);
    errno = error;
  } while (rt_now() < deadline);
  rt_problem(problem, "rank 0 was not to be reached at %s, port %s, within %.0f s: %s", host, port, patience,
             strerror(errno));
  rt_help(problem,
          "see whether rank 0 has started, whether MASTER_ADDR and MASTER_PORT are the same for all ranks, and "
          "whether a firewall is between them");
  return -1;
}

int rt_accept(int listening, double deadline) {
  while (wait_for(listening, POLLIN, deadline)) {
    int made = accept(listening, NULL, NULL);
    if (made >= 0) return prepared(made);
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) return -1;
  }
  return -1;
}

bool rt_send_all(int socket, const void *bytes, size_t size, double deadline) {
  for (size_t done = 0; done < size;) {
    ssize_t n = send(socket, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
    if (n > 0)
      done += (size_t)n;
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
      return false;
    else if (!wait_for(socket, POLLOUT, deadline))
      return false;
  }
  return true;
}

bool rt_receive_all(int socket, void *bytes, size_t size, double deadline) {
  for (size_t done = 0; done < size;) {
    ssize_t n = recv(socket, (char *)bytes + done, size - done, 0);
    if (n > 0)
      done += (size_t)n;
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
      return false;
    else if (!wait_for(socket, POLLIN, deadline))
      return false;
  }
  return true;
}
