/* Writing: whole or not at all, whatever happens meanwhile. */
#include "cmocka_all.h"

#include "runtime/files/files.h"
#include "runtime/files/folders.h"
#include "runtime/files/mapping.h"
#include "runtime/weights/safetensors.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/accel-files-XXXXXX";
static char path[128], partial[160];
static struct problem problem;

static bool exists(const char *name) {
  return access(name, F_OK) == 0;
}

static void content_is(const char *wanted) {
  char text[64] = "";
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  assert_string_equal(text, wanted);
}

static bool write_text(const char *text) {
  struct writer writer;
  return rt_writer_open(&writer, path, BY_RENAME, &problem) && rt_writer_add(&writer, text, strlen(text), &problem) &&
         rt_writer_commit(&writer, &problem);
}

static void replaces_whole(void **state) {
  (void)state;
  assert_true(write_text("old"));
  content_is("old");
  assert_true(write_text("new"));
  content_is("new");
  assert_false(exists(partial));
}

/* Around the sizes of a stream's blocks, in pieces of any size, on a disk and in memory. */
static void streams_large_files(void **state) {
  enum { BLOCK = 4 << 20, MOST = 3 * BLOCK + 5 };
  static const size_t sizes[] = {0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, MOST};
  static const char *const positions[] = {path, "/dev/shm/accel-files-stream"};
  uint8_t *bytes = malloc(MOST);
  (void)state;
  assert_non_null(bytes);
  for (size_t i = 0; i < MOST; i++) bytes[i] = (uint8_t)(i * 31 + i / 4099);
  for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
    size_t size = sizes[i / 2], piece = 1 + size / (3 + i);
    struct writer writer;
    struct mapping mapping;
    assert_true(rt_writer_open(&writer, positions[i % 2], BY_RENAME, &problem));
    rt_writer_stream(&writer);
    for (size_t at = 0; at < size; at += piece)
      assert_true(rt_writer_add(&writer, bytes + at, size - at < piece ? size - at : piece, &problem));
    assert_true(rt_writer_sum(&writer).xxh64 == rt_checksum(bytes, size));
    assert_true(rt_writer_commit(&writer, &problem));
    assert_true(rt_map(&mapping, positions[i % 2], "", &problem));
    assert_int_equal(mapping.size, size);
    assert_true(size == 0 || memcmp(mapping.bytes, bytes, size) == 0);
    rt_unmap(&mapping);
  }
  unlink(positions[1]);
  free(bytes);
}

static int64_t resident(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

/* What was allocated and is free again, below what is not, goes back before a stream takes its blocks. */
static void takes_the_place_of_what_is_free(void **state) {
  enum { SIZE = 64 << 10, COUNT = 256, BLOCKS = 4 << 20, SMALL = 1 << 20 };
  char *items[COUNT], *last;
  struct writer writer;
  (void)state;
  for (int i = 0; i < COUNT; i++) {
    items[i] = malloc(SIZE);
    assert_non_null(items[i]);
    memset(items[i], 1, SIZE);
  }
  last = malloc(SIZE);
  assert_non_null(last);
  const int64_t before = resident();
  for (int i = 0; i < COUNT; i++) free(items[i]);
  assert_true(rt_writer_open(&writer, path, BY_RENAME, &problem));
  rt_writer_stream(&writer);
#if defined __GLIBC__ && !defined __SANITIZE_ADDRESS__
  assert_true(resident() < before - (int64_t)COUNT * SIZE + BLOCKS + SMALL);
#else
  (void)before;
#endif
  assert_true(rt_writer_commit(&writer, &problem));
  free(last);
}

/* The same where a thread writes: at the first block, a later one, and the rest. */
static void survives_a_full_disk_in_a_stream(void **state) {
  static const rlim_t limits[] = {1 << 20, 6 << 20, 9 << 20};
  enum { SIZE = 10 << 20 };
  char *bytes = calloc(1, SIZE);
  struct rlimit old;
  (void)state;
  assert_non_null(bytes);
  assert_true(write_text("old"));
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &old);
  for (int i = 0; i < 3; i++) {
    struct rlimit limit = {limits[i], old.rlim_max};
    struct writer writer;
    setrlimit(RLIMIT_FSIZE, &limit);
    bool written = rt_writer_open(&writer, path, BY_RENAME, &problem);
    if (written) rt_writer_stream(&writer);
    written = written && rt_writer_add(&writer, bytes, SIZE, &problem) && rt_writer_commit(&writer, &problem);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_false(written);
    assert_non_null(strstr(problem.what, "cannot be written: File too large"));
    content_is("old");
    assert_false(exists(partial));
  }
  free(bytes);
}

/* A file system that is full at any byte: the old file stays, nothing else does. */
static void survives_a_full_disk(void **state) {
  static char weights[4 * 4096], name[] = "w";
  const struct tensor_view tensor = {
      .name = name, .dtype = ACCEL_FLOAT32, .rank = 1, .shape = {4096}, .bytes = weights, .size = sizeof weights};
  struct rlimit old, limit;
  (void)state;
  assert_true(write_text("old"));
  signal(SIGXFSZ, SIG_IGN); /* then a write past the limit fails with EFBIG */
  getrlimit(RLIMIT_FSIZE, &old);
  for (rlim_t most = 0; most < 16384; most += 1021) {
    limit = (struct rlimit){most, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    bool written = rt_safetensors_write(path, BY_RENAME, &tensor, 1, NULL, NULL, &problem);
    setrlimit(RLIMIT_FSIZE, &old);
    assert_false(written);
    assert_non_null(strstr(problem.what, "cannot be written: File too large"));
    content_is("old");
    assert_false(exists(partial));
  }
}

/* A process killed between any two writes: the old file stays; the partial one is written over by the next. */
static void survives_a_kill(void **state) {
  (void)state;
  assert_true(write_text("old"));
  pid_t child = fork();
  if (child == 0) {
    struct writer writer;
    if (rt_writer_open(&writer, path, BY_RENAME, &problem) && rt_writer_add(&writer, "longer than new", 15, &problem))
      raise(SIGKILL);
    _exit(1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  content_is("old");
  assert_true(exists(partial));
  assert_true(write_text("new"));
  content_is("new");
  assert_false(exists(partial));
}

static void reports_what_fails(void **state) {
  struct writer writer;
  char missing[160], long_name[5000];
  (void)state;
  snprintf(missing, sizeof missing, "%s/none/file", folder);
  assert_false(rt_writer_open(&writer, missing, BY_RENAME, &problem));
  assert_non_null(strstr(problem.what, "none/file.partial: cannot be created: No such file or directory"));
  memset(long_name, 'a', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = '\0';
  assert_false(rt_writer_open(&writer, long_name, BY_RENAME, &problem));
  assert_non_null(strstr(problem.what, "the path is too long"));
  assert_false(rt_make_folders(long_name, &problem));
  assert_true(write_text("file"));
  snprintf(missing, sizeof missing, "%s/below", path);
  assert_false(rt_make_folders(missing, &problem));
  assert_non_null(strstr(problem.what, "the folder cannot be made"));
}

/* What has the name and is no regular file stays, also behind a link. */
static void replaces_files_alone(void **state) {
  static const char *const words[] = {"is not a regular file, and would be replaced", "is a folder"};
  char other[160];
  struct stat status;
  (void)state;
  snprintf(other, sizeof other, "%s/other", folder);
  unlink(path);
  for (int is_folder = 0; is_folder < 2; is_folder++)
    for (int is_link = 0; is_link < 2; is_link++) {
      const char *at = is_link ? other : path;
      assert_int_equal(is_folder ? mkdir(at, 0777) : mkfifo(at, 0666), 0);
      if (is_link) assert_int_equal(symlink(other, path), 0);
      assert_false(write_text("new"));
      assert_non_null(strstr(problem.what, words[is_folder]));
      assert_non_null(strstr(problem.help, "choose the name of a file"));
      assert_false(exists(partial));
      assert_true(stat(path, &status) == 0 && (is_folder ? S_ISDIR(status.st_mode) : S_ISFIFO(status.st_mode)));
      if (is_link) assert_int_equal(unlink(path), 0);
      assert_int_equal(is_folder ? rmdir(at) : unlink(at), 0);
    }
}

static void makes_folders(void **state) {
  char deep[160], upper[140];
  struct stat status;
  (void)state;
  snprintf(upper, sizeof upper, "%s/a", folder);
  snprintf(deep, sizeof deep, "%s/b/", upper);
  assert_true(rt_make_folders(deep, &problem));
  assert_true(rt_make_folders(deep, &problem));
  assert_true(stat(deep, &status) == 0 && S_ISDIR(status.st_mode));
  assert_int_equal(rmdir(deep), 0);
  assert_int_equal(rmdir(upper), 0);
}

/* A file of the name that is written first may be a link to another, or another's second name. */
static void writes_next_to_links(void **state) {
  char other[160], text[8] = "";
  (void)state;
  snprintf(other, sizeof other, "%s/other", folder);
  for (int hard = 0; hard < 2; hard++) {
    assert_true(write_text("kept") && rename(path, other) == 0);
    assert_int_equal(hard ? link(other, partial) : symlink(other, partial), 0);
    assert_true(write_text("new"));
    content_is("new");
    FILE *file = fopen(other, "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof text - 1, file), 4);
    fclose(file);
    assert_string_equal(text, "kept");
    assert_false(exists(partial));
  }
  assert_int_equal(unlink(other), 0);
}

static void made(const char *name, bool is_folder) {
  char at[160];
  snprintf(at, sizeof at, "%s/%s", folder, name);
  FILE *file = is_folder ? NULL : fopen(at, "w");
  assert_true(is_folder ? mkdir(at, 0700) == 0 : file != NULL && fclose(file) == 0);
}

static void removes_folders(void **state) {
  char target[160], run[160], name[200], deep[4000];
  (void)state;
  snprintf(target, sizeof target, "%s/target", folder);
  snprintf(run, sizeof run, "%s/run", folder);
  made("target", true), made("target/file", false);
  made("run", true), made("run/file", false), made("run/inner", true), made("run/inner/file", false);
  snprintf(name, sizeof name, "%s/inner/link", run);
  assert_int_equal(symlink(target, name), 0);
  assert_true(rt_folder_remove(run, &problem));
  assert_false(exists(run));
  assert_int_equal(symlink(target, run), 0);
  assert_true(rt_folder_remove(run, &problem));
  assert_true(rt_folder_remove(run, &problem)); /* what is not there is removed */
  assert_int_equal(symlink(target, run), 0);
  assert_true(rt_folder_make_own(run, &problem));
  made("run/own", false);
  snprintf(name, sizeof name, "%s/own", target);
  assert_false(exists(name));
  size_t at = (size_t)snprintf(deep, sizeof deep, "%s", run);
  for (int i = 0; i < 40; i++) at += (size_t)snprintf(deep + at, sizeof deep - at, "/d");
  assert_true(rt_make_folders(deep, &problem));
  assert_false(rt_folder_remove(run, &problem));
  assert_non_null(strstr(problem.what, "/d: cannot be emptied: it is mounted there, or too deep"));
  snprintf(name, sizeof name, "%s/d/d/d/d/d/d/d/d/d/d", run);
  assert_true(rt_folder_remove(name, &problem) && rt_folder_remove(run, &problem));
  snprintf(name, sizeof name, "%s/file", target);
  assert_true(exists(name));
  assert_true(rt_folder_remove(target, &problem));
}

static int set_up(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(path, sizeof path, "%s/file", folder);
  snprintf(partial, sizeof partial, "%s.partial", path);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(replaces_whole),
      cmocka_unit_test(streams_large_files),
      cmocka_unit_test(takes_the_place_of_what_is_free),
      cmocka_unit_test(survives_a_full_disk_in_a_stream),
      cmocka_unit_test(survives_a_full_disk),
      cmocka_unit_test(survives_a_kill),
      cmocka_unit_test(reports_what_fails),
      cmocka_unit_test(replaces_files_alone),
      cmocka_unit_test(makes_folders),
      cmocka_unit_test(writes_next_to_links),
      cmocka_unit_test(removes_folders),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
