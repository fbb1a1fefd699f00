#include "tests/tcp/children.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_environment(const char *words) {
  char text[512];
  snprintf(text, sizeof text, "%s", words);
  for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
    char *equals = strchr(word, '=');
    *equals = '\0';
    setenv(word, equals + 1, 1);
  }
}

static pid_t start(void (*body)(void), const char *environment, int said) {
  pid_t child = fork();
  if (child != 0) return child;
  dup2(said, STDERR_FILENO);
  close(said);
  set_environment(environment);
  alarm(300); /* a case that hangs fails */
  body();
  exit(0);
}

static void listen_to(int said, struct ends *ends) {
  size_t length = 0;
  ssize_t got;
  while (length < sizeof ends->text - 1 && (got = read(said, ends->text + length, sizeof ends->text - 1 - length)) > 0)
    length += (size_t)got;
  ends->text[length] = '\0';
  close(said);
}

static struct ends run(void (*body)(void), int count, char environments[][512]) {
  struct ends ends = {{0}, ""};
  pid_t children[MOST_CHILDREN];
  int said[2];
  fflush(stdout);
  if (pipe(said) != 0) return ends;
  for (int i = 0; i < count; i++) children[i] = start(body, environments[i], said[1]);
  close(said[1]);
  listen_to(said[0], &ends);
  for (int i = 0; i < count; i++) {
    int status = 0;
    waitpid(children[i], &status, 0);
    ends.status[i] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return ends;
}

struct ends in_child(void (*body)(void), const char *environment) {
  char environments[1][512];
  snprintf(environments[0], sizeof environments[0], "%s", environment);
  return run(body, 1, environments);
}

int ended(void (*body)(void), const char *environment, char *text, int size) {
  struct ends ends = in_child(body, environment);
  snprintf(text, (size_t)size, "%s", ends.text);
  return ends.status[0];
}

bool ends_with(void (*body)(void), const char *environment, int status, const char *said) {
  struct ends ends = in_child(body, environment);
  if (ends.status[0] == status && strstr(ends.text, said) != NULL) return true;
  fprintf(stderr, "%s: status %d, '%s'\n", environment, ends.status[0], ends.text);
  return false;
}

struct ends in_ranks(void (*body)(void), int count, const char *environment, const char *const *own) {
  char environments[MOST_CHILDREN][512];
  int holder, port = hold_port(&holder);
  for (int i = 0; i < count; i++)
    snprintf(environments[i], sizeof environments[i], "RANK=%d WORLD_SIZE=%d MASTER_PORT=%d %s %s", i, count, port,
             environment, own != NULL ? own[i] : "");
  struct ends ends = run(body, count, environments);
  close(holder);
  return ends;
}

int hold_port(int *holder) {
  const int on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  *holder = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(*holder, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(*holder, (struct sockaddr *)&address, sizeof address) != 0) {
    perror("bind");
    abort();
  }
  getsockname(*holder, (struct sockaddr *)&address, &size);
  return ntohs(address.sin_port);
}
