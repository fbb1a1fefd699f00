#define _GNU_SOURCE /* ppoll, accept4 in the library's header */
#include "gen/server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"

/* A connection is for one request. One that has not asked within the first time, or takes nothing of its answer during
 * the second, is closed: whoever holds connections open keeps nobody else waiting for longer. */
enum { MOST_CONNECTIONS = 64, BYTES_OF_REQUEST = 1 << 15, SECONDS_TO_ASK = 5, SECONDS_TO_TAKE = 30 };

struct visitor {
  bool is_here, has_asked;
  int socket;
  double since; /* when it came */
};

struct server {
  server_source *source;
  void *context;
  struct visitor visitors[MOST_CONNECTIONS];
};

/* ---- The socket ---- */

static int fail(int handle, int port, struct problem *problem) {
  const int reason = errno;
  if (handle >= 0) close(handle);
  rt_problem(problem, "127.0.0.1:%d: %s", port,
             reason == EADDRINUSE ? "another program listens there" : strerror(reason));
  if (reason == EADDRINUSE || reason == EACCES)
    rt_help(problem, "name another port with --port N, or take one that is free with --port 0");
  return -1;
}

int server_open(int *port, struct problem *problem) {
  const int handle = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1;
  struct sockaddr_in at = {
      .sin_family = AF_INET, .sin_port = htons((in_port_t)*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  if (handle < 0 || setsockopt(handle, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(handle, (const struct sockaddr *)&at, size) != 0 || listen(handle, MOST_CONNECTIONS) != 0 ||
      getsockname(handle, (struct sockaddr *)&at, &size) != 0)
    return fail(handle, *port, problem);
  *port = ntohs(at.sin_port);
  return handle;
}

/* ---- Visitors ---- */

static void on_connection(void *context, struct MHD_Connection *connection, void **visitor,
                          enum MHD_ConnectionNotificationCode what) {
  struct server *server = context;
  if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
    if (*visitor != NULL) ((struct visitor *)*visitor)->is_here = false;
    return;
  }
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  for (int i = 0; i < MOST_CONNECTIONS && info != NULL && *visitor == NULL; i++) {
    if (server->visitors[i].is_here) continue;
    server->visitors[i] = (struct visitor){.is_here = true, .socket = info->connect_fd, .since = rt_now()};
    *visitor = &server->visitors[i];
  }
}

/* Shuts the connections of those that ask too slowly: the daemon then closes them. Whether any visitor has not asked.
 */
static bool hurry(struct server *server) {
  bool any = false;
  for (int i = 0; i < MOST_CONNECTIONS; i++) {
    struct visitor *visitor = &server->visitors[i];
    if (!visitor->is_here || visitor->has_asked) continue;
    if (rt_now() - visitor->since > SECONDS_TO_ASK) shutdown(visitor->socket, SHUT_RDWR);
    any = true;
  }
  return any;
}

/* ---- Answers ---- */

/* Whether a browser asks for this machine by its own names, at whatever port: one that is forwarded has another. */
static bool is_own(const char *host) {
  static const char *const names[] = {"127.0.0.1", "localhost"};
  for (size_t i = 0; host != NULL && i < sizeof names / sizeof *names; i++) {
    const size_t length = strlen(names[i]);
    if (strncasecmp(host, names[i], length) != 0) continue;
    const char *port = host + length;
    if (*port == '\0' || (*port == ':' && port[1 + strspn(port + 1, "0123456789")] == '\0')) return true;
  }
  return false;
}

static enum MHD_Result send_bytes(struct MHD_Connection *connection, unsigned status,
                                  const struct server_answer *answer) {
  static const char *const heads[][2] = {{"Connection", "close"},
                                         {"Cache-Control", "no-store"},
                                         {"X-Content-Type-Options", "nosniff"},
                                         {"X-Frame-Options", "DENY"},
                                         {"Cross-Origin-Resource-Policy", "same-origin"},
                                         {"Referrer-Policy", "no-referrer"}};
  struct MHD_Response *response =
      MHD_create_response_from_buffer(answer->length, (void *)answer->bytes, MHD_RESPMEM_MUST_COPY);
  if (response == NULL) return MHD_NO;
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) MHD_add_response_header(response, heads[i][0], heads[i][1]);
  MHD_add_response_header(response, "Content-Type", answer->type);
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(response, "Allow", "GET, HEAD");
  const enum MHD_Result sent = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return sent;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *words) {
  const struct server_answer answer = {.type = "text/plain; charset=utf-8", .bytes = words, .length = strlen(words)};
  return send_bytes(connection, status, &answer);
}

/* Called once the head of a request is here; a body, which no request needs, is not read. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *body, size_t *size,
                                  void **request) {
  struct server *server = context;
  struct server_answer answer = {0};
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  (void)version;
  (void)body;
  (void)size;
  (void)request;
  if (info != NULL && info->socket_context != NULL) ((struct visitor *)info->socket_context)->has_asked = true;
  if (!is_own(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host")))
    return refuse(connection, MHD_HTTP_FORBIDDEN, "This server answers to 127.0.0.1 and localhost alone.\n");
  if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
    return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "This server knows GET and HEAD alone.\n");
  server->source(server->context, path, &answer);
  if (answer.type == NULL) return refuse(connection, MHD_HTTP_NOT_FOUND, "There is nothing here: the page is /.\n");
  return send_bytes(connection, MHD_HTTP_OK, &answer);
}

/* ---- The loop ---- */

/* A handler can be handed nothing. It comes in ppoll alone. */
static volatile sig_atomic_t ends;

static void note(int signal) {
  (void)signal;
  ends = 1;
}

/* The signals that end the server are blocked but for the mask that is given, under which it waits. */
static void take_signals(sigset_t *waiting) {
  static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction action = {.sa_handler = note};
  sigset_t blocked;
  sigemptyset(&blocked);
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
    sigaddset(&blocked, ending[i]);
    sigaction(ending[i], &action, NULL);
  }
  sigprocmask(SIG_BLOCK, &blocked, waiting);
  for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) sigdelset(waiting, ending[i]);
  action.sa_handler = SIG_IGN; /* a visitor that goes is no error */
  sigaction(SIGPIPE, &action, NULL);
}

static void answer_until_end(struct MHD_Daemon *daemon, struct server *server) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
  struct pollfd events = {.fd = info->epoll_fd, .events = POLLIN};
  sigset_t waiting;
  take_signals(&waiting);
  while (!ends) {
    MHD_UNSIGNED_LONG_LONG ms = 0;
    const bool hurries = hurry(server), limited = MHD_get_timeout(daemon, &ms) == MHD_YES;
    if (hurries && (!limited || ms > 500)) ms = 500;
    const struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    ppoll(&events, 1, limited || hurries ? &time : NULL, &waiting);
    if (!ends) MHD_run(daemon);
  }
}

bool server_run(int socket, server_source *source, void *context, struct problem *problem) {
  struct server server = {.source = source, .context = context};
  struct MHD_Daemon *daemon =
      MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, &server, MHD_OPTION_LISTEN_SOCKET, socket,
                       MHD_OPTION_CONNECTION_LIMIT, (unsigned)MOST_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                       (size_t)BYTES_OF_REQUEST, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SECONDS_TO_TAKE,
                       MHD_OPTION_NOTIFY_CONNECTION, on_connection, &server, MHD_OPTION_END);
  if (daemon == NULL) {
    close(socket);
    return rt_problem(problem, "the server does not start: %s", strerror(errno));
  }
  answer_until_end(daemon, &server);
  MHD_stop_daemon(daemon); /* closes the socket */
  return true;
}
