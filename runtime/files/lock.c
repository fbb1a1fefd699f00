#define _DEFAULT_SOURCE /* gethostname */
#include "runtime/files/lock.h"

#include "runtime/base/clock.h"
#include "runtime/files/files.h"
#include "runtime/process/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Seconds for a run that was ended to be gone, such as the one that a restart follows. */
static const double patience = 2;

/* The lock of this process, for its end, to which nothing can be handed. The descriptor stays open: closing any
 * descriptor of the file lets go of such a own_lock. A child of fork() does not have it. */
static struct {
  char path[4096]; /* of run.lock */
  size_t had;      /* how much of that path was there before */
  pid_t owner;     /* 0: there is none */
} own_lock;

/* How much of a path is there already: up to the slash after the last folder that is. */
static size_t length_that_is(const char *path) {
  char upper[4096];
  struct stat status;
  size_t length = (size_t)snprintf(upper, sizeof upper, "%s", path);
  if (length >= sizeof upper) return length;
  while (length > 0 && lstat(upper, &status) != 0) {
    while (length > 0 && upper[length - 1] == '/') length--;
    while (length > 0 && upper[length - 1] != '/') length--;
    upper[length] = '\0';
  }
  return length;
}

static void release(void) {
  if (own_lock.owner != getpid()) return;
  own_lock.owner = 0;
  unlink(own_lock.path);
  for (char *slash; (slash = strrchr(own_lock.path, '/')) != NULL && (size_t)(slash - own_lock.path) > own_lock.had;) {
    *slash = '\0';
    if (slash[-1] != '/' && rmdir(own_lock.path) != 0) return;
  }
}

/* Whether the open file is still the one of this name: who held it before removes it at its end. */
static bool is_named(int file, const char *path) {
  struct stat opened, named;
  return fstat(file, &opened) == 0 && lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

static void note_holder(int file) {
  char host[256] = "", text[300];
  if (gethostname(host, sizeof host - 1) != 0) snprintf(host, sizeof host, "this machine");
  int length = snprintf(text, sizeof text, "process %ld on %s\n", (long)getpid(), host);
  bool noted = ftruncate(file, 0) == 0 && pwrite(file, text, (size_t)length, 0) == length;
  (void)noted; /* it is for messages alone */
}

static void report_holder(int file, const char *folder, struct problem *problem) {
  char holder[300] = "";
  ssize_t length = pread(file, holder, sizeof holder - 1, 0);
  for (ssize_t i = 0; i < length; i++)
    if (holder[i] < ' ' || holder[i] > '~') holder[i] = '\0';
  rt_problem(problem, "%s: another run writes here%s%s", folder, holder[0] != '\0' ? ": " : "", holder);
  rt_help(problem, "wait for its end, or choose another folder with --project-dir");
}

enum outcome { TAKEN, REFUSED, HELD, AGAIN };

static enum outcome take(const char *folder, struct problem *problem) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  int file = open(own_lock.path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0 && errno == ENOENT) return AGAIN;
  if (file < 0) {
    rt_problem(problem, "%s: cannot be opened: %s", own_lock.path, strerror(errno));
    rt_help(problem, "check the rights of the folder, or choose another with --project-dir");
    return REFUSED;
  }
  bool locked = fcntl(file, F_SETLK, &lock) == 0;
  int error = errno;
  if (!locked && error == EAGAIN) {
    report_holder(file, folder, problem);
    close(file);
    return HELD;
  }
  if (!is_named(file, own_lock.path)) {
    close(file);
    return AGAIN;
  }
  if (!locked)
    rt_warn("%s: cannot be locked: %s; nothing prevents another run from writing here", own_lock.path, strerror(error));
  note_holder(file);
  return TAKEN;
}

bool rt_lock_folder(const char *folder, struct problem *problem) {
  const double until = rt_now() + patience;
  const struct timespec pause = {.tv_nsec = 20000000};
  enum outcome outcome = AGAIN;
  own_lock.had = length_that_is(folder);
  if (!rt_join(own_lock.path, sizeof own_lock.path, folder, "run.lock", problem)) return false;
  rt_problem(problem, "%s: is removed again and again", own_lock.path);
  while (outcome != TAKEN) {
    if (outcome == REFUSED || rt_now() > until) return false;
    if (outcome == HELD) nanosleep(&pause, NULL);
    /* Who ends takes the file away, and the folder too, where nothing was written in it. */
    if (!rt_make_folders(folder, problem)) return false;
    outcome = take(folder, problem);
  }
  own_lock.owner = getpid();
  return atexit(release) == 0 || rt_problem(problem, "%s: no memory to remove it at the end", own_lock.path);
}

bool rt_folder_is_locked(const char *folder) {
  char path[4096];
  struct problem problem;
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
  if (!rt_join(path, sizeof path, folder, "run.lock", &problem)) return false;
  const int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return false;
  const bool locked = fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  close(file);
  return locked;
}
