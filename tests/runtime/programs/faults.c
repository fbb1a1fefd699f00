/* Preloaded into a program: what changes files is counted, call by call. Those from number FAULT_AT to FAULT_UNTIL (as
 * a rule FAULT_AT itself) fail with FAULT_ERRNO. 0: a write takes one byte only, and all else succeeds; -1: the process
 * kills itself before the call; -2: it waits for five minutes. FAULT_NAMES: a file that gets the calls at the end,
 * a name a line. FAULT_PATH, FAULT_CALL: calls for files whose path does not hold the one, calls of another name than
 * the other are let through, and do not count. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 65536 };

static atomic_long calls;
static const char *names[MOST];

static long number(const char *name, long fallback) {
  const char *text = getenv(name);
  return text != NULL ? strtol(text, NULL, 10) : fallback;
}

static void write_names(void) {
  const char *path = getenv("FAULT_NAMES");
  FILE *file = path != NULL ? fopen(path, "w") : NULL;
  if (file == NULL) return;
  long count = calls;
  for (long i = 1; i <= count && i < MOST; i++) fprintf(file, "%s\n", names[i]);
  fclose(file);
}

__attribute__((constructor)) static void begin(void) {
  atexit(write_names);
}

/* The path of an open file. */
static const char *path_of(int file) {
  static _Thread_local char path[4096];
  char link[40];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1);
  path[size > 0 ? size : 0] = '\0';
  return path;
}

/* Whether this call is one of those that go wrong; errno says how. */
static int goes_wrong(const char *name, const char *path) {
  const char *wanted = getenv("FAULT_PATH");
  if (wanted != NULL && strstr(path, wanted) == NULL) return 0;
  const char *counted = getenv("FAULT_CALL");
  if (counted != NULL && strcmp(name, counted) != 0) return 0;
  long call = atomic_fetch_add(&calls, 1) + 1, at = number("FAULT_AT", -1);
  if (call < MOST) names[call] = name;
  if (at < 0 || call < at || call > number("FAULT_UNTIL", at)) return 0;
  errno = (int)number("FAULT_ERRNO", EIO);
  if (errno == -1) kill(getpid(), SIGKILL);
  if (errno == -2) sleep(300);
  return errno != -2;
}

static int fails(const char *name, const char *path) {
  return goes_wrong(name, path) && errno != 0;
}

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
  va_end(arguments);
  if ((flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0 && fails("open", path)) return -1;
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

ssize_t write(int file, const void *bytes, size_t size) {
  if (file > STDERR_FILENO && goes_wrong("write", path_of(file))) {
    if (errno != 0) return -1;
    size = size > 1 ? 1 : size;
  }
  return syscall(SYS_write, file, bytes, size);
}

/* What was written is in the file's cache then, and may yet be lost; the descriptor is gone either way. */
int close(int file) {
  int flags = fcntl(file, F_GETFL);
  int bad = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && file > STDERR_FILENO && fails("close", path_of(file));
  int error = errno, status = (int)syscall(SYS_close, file);
  if (bad) errno = error;
  return bad ? -1 : status;
}

int fsync(int file) {
  return fails("fsync", path_of(file)) ? -1 : (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
  return fails("fdatasync", path_of(file)) ? -1 : (int)syscall(SYS_fdatasync, file);
}

int ftruncate(int file, off_t size) {
  return fails("ftruncate", path_of(file)) ? -1 : (int)syscall(SYS_ftruncate, file, size);
}

int rename(const char *from, const char *to) {
  return fails("rename", from) ? -1 : (int)syscall(SYS_rename, from, to);
}

int link(const char *from, const char *to) {
  return fails("link", from) ? -1 : (int)syscall(SYS_link, from, to);
}

int unlink(const char *path) {
  return fails("unlink", path) ? -1 : (int)syscall(SYS_unlink, path);
}

int unlinkat(int folder, const char *path, int flags) {
  return fails("unlinkat", folder == AT_FDCWD ? path : path_of(folder))
             ? -1
             : (int)syscall(SYS_unlinkat, folder, path, flags);
}

int mkdir(const char *path, mode_t mode) {
  return fails("mkdir", path) ? -1 : (int)syscall(SYS_mkdir, path, mode);
}

int rmdir(const char *path) {
  return fails("rmdir", path) ? -1 : (int)syscall(SYS_rmdir, path);
}

/* Of its commands those that lock. */
int fcntl(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void *argument = va_arg(arguments, void *);
  va_end(arguments);
  if (command == F_SETLK && fails("fcntl", path_of(file))) return -1;
  return (int)syscall(SYS_fcntl, file, command, argument);
}
