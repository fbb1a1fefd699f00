/* embed: writes files as C arrays, and what ninja must watch for them.
 *
 * usage: embed OUTPUT.c OUTPUT.c.d TEMPLATES JOB_SCHEMA TUNING_SCHEMA MEASURED_SCHEMA NAMES SOURCE...
 *
 * A SOURCE is a folder, or a file, of what a bundle takes along or `accel-gen test` runs.
 *
 * Defines what gen/base/embedded.h declares. String literals, as long as a file is, since compilers take ten times as
 * long for lists of numbers; ISO C promises 4,095 characters, and gcc and clang take any number. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILES = 4096, MAX_PATH = 1024 };

struct files {
  char *paths[MAX_FILES];
  int count;
};

static void fail(const char *what, const char *path) {
  fprintf(stderr, "embed: %s ", what);
  perror(path);
  exit(1);
}

static FILE *open_file(const char *path, const char *mode) {
  FILE *file = fopen(path, mode);
  if (file == NULL) fail("cannot open", path);
  return file;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add(struct files *files, const char *path) {
  char *copy = strdup(path);
  if (copy == NULL || files->count == MAX_FILES) fail("no space for", path);
  files->paths[files->count++] = copy;
}

/* All files below `folder`; each folder is noted in `depends`, since it changes when a file comes or goes. */
static void collect(struct files *files, const char *folder, FILE *depends) {
  DIR *handle = opendir(folder);
  if (handle == NULL) fail("cannot open", folder);
  fprintf(depends, " %s", folder);
  for (struct dirent *entry; (entry = readdir(handle)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    char path[MAX_PATH];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    struct stat status;
    if (stat(path, &status) != 0) fail("cannot look at", path);
    if (S_ISDIR(status.st_mode)) {
      collect(files, path, depends);
    } else {
      add(files, path);
    }
  }
  closedir(handle);
}

/* A byte of a string literal, on any compiler: no trigraph, no letter beyond ASCII. */
static void write_byte(FILE *out, int byte) {
  if (byte == '\n')
    fputs("\\n\"\n\"", out);
  else if (byte == '"' || byte == '\\' || byte == '?')
    fprintf(out, "\\%c", byte);
  else if (byte >= ' ' && byte <= '~')
    putc(byte, out);
  else
    fprintf(out, "\\%03o", (unsigned)byte);
}

/* The bytes of a file as a string literal, a line a line. */
static void write_bytes(FILE *out, const char *path, FILE *depends) {
  FILE *in = open_file(path, "rb");
  fprintf(depends, " %s", path);
  putc('"', out);
  for (int byte; (byte = getc(in)) != EOF;) write_byte(out, byte);
  fputs("\";\n", out);
  fclose(in);
}

/* Writes the files as an array of name and text; of each name `cut` characters are left out. Frees the names. */
static void write_files(FILE *out, struct files *files, size_t cut, const char *name, FILE *depends) {
  qsort(files->paths, (size_t)files->count, sizeof files->paths[0], by_name);
  for (int i = 0; i < files->count; i++) {
    fprintf(out, "static const char %s_%d[] =\n", name, i);
    write_bytes(out, files->paths[i], depends);
  }
  fprintf(out, "const struct embedded_file accel_%ss[] = {\n", name);
  for (int i = 0; i < files->count; i++) fprintf(out, "    {\"%s\", %s_%d},\n", files->paths[i] + cut, name, i);
  fprintf(out, "    {0, 0},\n};\nconst int accel_%s_count = %d;\n", name, files->count);
  for (int i = 0; i < files->count; i++) free(files->paths[i]);
}

static void write_sources(FILE *out, char **paths, FILE *depends) {
  struct files files = {.count = 0};
  for (; *paths != NULL; paths++) {
    struct stat status;
    if (stat(*paths, &status) != 0) fail("cannot look at", *paths);
    if (S_ISDIR(status.st_mode))
      collect(&files, *paths, depends);
    else
      add(&files, *paths);
  }
  write_files(out, &files, 0, "source", depends);
}

int main(int argc, char **argv) {
  if (argc < 9) {
    fprintf(stderr,
            "usage: embed OUTPUT.c OUTPUT.c.d TEMPLATES JOB_SCHEMA TUNING_SCHEMA MEASURED_SCHEMA NAMES SOURCE...\n");
    return 2;
  }
  FILE *out = open_file(argv[1], "w"), *depends = open_file(argv[2], "w");
  fprintf(depends, "%s:", argv[1]);
  fprintf(out, "/* Written by tools/embed.c. */\n#include \"gen/base/embedded.h\"\n\n"
               "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n\n");
  struct files templates = {.count = 0};
  collect(&templates, argv[3], depends);
  write_files(out, &templates, strlen(argv[3]) + 1, "template", depends);
  fprintf(out, "const char accel_job_schema[] =\n");
  write_bytes(out, argv[4], depends);
  fprintf(out, "const char accel_tuning_schema[] =\n");
  write_bytes(out, argv[5], depends);
  fprintf(out, "const char accel_measured_schema[] =\n");
  write_bytes(out, argv[6], depends);
  fprintf(out, "const char accel_names[] =\n");
  write_bytes(out, argv[7], depends);
  write_sources(out, argv + 8, depends);
  fprintf(depends, "\n");
  if (fclose(out) != 0) fail("cannot write", argv[1]);
  if (fclose(depends) != 0) fail("cannot write", argv[2]);
  return 0;
}
