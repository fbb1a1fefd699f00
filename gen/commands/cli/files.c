#define _XOPEN_SOURCE 700 /* realpath */
#include "gen/commands/cli/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/base/file.h"
#include "gen/base/sha256.h"
#include "gen/base/text.h"
#include "runtime/base/terminal.h"

static bool complain(const char *path) {
  rt_print(stderr, "accel-gen: cannot write %s: %s\n", path, strerror(errno));
  return false;
}

static bool write_all(int file, const char *bytes, size_t length) {
  while (length > 0) {
    ssize_t written = write(file, bytes, length);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes += written;
    length -= (size_t)written;
  }
  return true;
}

/* The permissions that a plain open would have given. */
static mode_t plain_mode(void) {
  mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

/* Whether `path` is something to write into as it is, such as /dev/null or a pipe, and not a file to replace. */
static bool is_device(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static bool write_stream(const char *path, const char *bytes, size_t length) {
  FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
  if (out == NULL) return complain(path);
  bool good = fwrite(bytes, 1, length, out) == length && fflush(out) == 0;
  if (out != stdout && fclose(out) != 0) good = false;
  return good || complain(path);
}

bool is_program(const char *path) {
  char magic[4];
  FILE *file = fopen(path, "rb");
  if (file == NULL) return false;
  bool whole = fread(magic, 1, sizeof magic, file) == sizeof magic;
  fclose(file);
  return whole && memcmp(magic, "\177ELF", sizeof magic) == 0;
}

bool is_folder(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool write_file(const struct inputs *inputs, const char *path, const char *bytes, size_t length) {
  if (!inputs_spare(inputs, path)) return false;
  if (strcmp(path, "-") == 0 || is_device(path)) return write_stream(path, bytes, length);
  char *temporary = arena_printf(inputs->arena, "%s.XXXXXX", path);
  int file = mkstemp(temporary);
  if (file < 0) return complain(path);
  bool good = write_all(file, bytes, length) && fchmod(file, plain_mode()) == 0 && fsync(file) == 0;
  if (close(file) != 0) good = false;
  if (good && rename(temporary, path) == 0) return true;
  int reason = errno;
  unlink(temporary);
  errno = reason;
  return complain(path);
}

bool write_lines(const struct inputs *inputs, const char *path, const char *text) {
  if (strcmp(path, "-") != 0) return write_file(inputs, path, text, strlen(text));
  rt_print_text(stdout, text);
  return (fflush(stdout) == 0 && !ferror(stdout)) || complain(path);
}

const char *digest_of(struct arena *arena, const char *bytes, size_t length) {
  char hex[65];
  sha256_of(bytes, length, hex);
  return arena_string(arena, hex);
}

const char *file_digest(struct arena *arena, const char *path) {
  struct arena *own = arena_new();
  size_t length;
  const char *bytes = read_bytes(own, path, &length);
  const char *digest = bytes != NULL ? digest_of(arena, bytes, length) : NULL;
  arena_free(own);
  return digest;
}

const char *name_from(struct arena *arena, const char *folder, const char *path) {
  char *from = realpath(folder, NULL), *to = realpath(path, NULL);
  const char *name = path;
  if (from != NULL && to != NULL) {
    size_t common = 0, at = 0; /* common: after the last slash of what both begin with */
    size_t length = strcmp(from, "/") == 0 ? 0 : strlen(from);
    from[length] = '\0';
    for (; from[at] == to[at] && from[at] != '\0'; at++)
      if (from[at] == '/') common = at + 1;
    if (from[at] == '\0' && to[at] == '/') common = at + 1;
    struct text text = text_in(arena);
    for (size_t i = common; i < length; i++)
      if (i == common || from[i] == '/') text_puts(&text, "../");
    text_puts(&text, to + common);
    name = text_string(&text);
  }
  free(from);
  free(to);
  return name;
}

const char *shell_word(struct arena *arena, const char *word) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./=+,:@%-";
  if (word[0] != '\0' && word[strspn(word, plain)] == '\0') return word;
  struct text text = text_in(arena);
  text_puts(&text, "'");
  for (const char *at = word; *at != '\0'; at++)
    if (*at == '\'')
      text_puts(&text, "'\\''");
    else
      text_add(&text, at, 1);
  text_puts(&text, "'");
  return text_string(&text);
}

bool make_folders(struct arena *arena, const char *path) {
  for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    const char *folder = arena_copy(arena, path, (size_t)(slash - path));
    if (mkdir(folder, 0777) == 0 || errno == EEXIST) continue;
    rt_print(stderr, "accel-gen: cannot make the folder %s: %s\n", folder, strerror(errno));
    return false;
  }
  return true;
}
