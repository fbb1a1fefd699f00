#include "gen/commands/data/labels.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/path.h"
#include "runtime/files/files.h"

enum { SHOWN = 300 };

static bool no_memory(struct problem *problem) {
  return rt_problem(problem, "no memory for the labels");
}

static bool add(struct labels *labels, const char *name, struct problem *problem) {
  json_t *number = json_integer((json_int_t)json_object_size(labels->numbers));
  return json_object_set_new(labels->numbers, name, number) == 0 || no_memory(problem);
}

/* ---- A given list ---- */

static bool refuse_name(struct problem *problem, const char *list, const char *what, const char *name) {
  rt_problem(problem, "--labels %s: %s%s", list, what, name);
  return rt_help(problem, "give a,b,c, or a JSON file with id2label: {\"0\": \"a\", \"1\": \"b\"}");
}

static bool add_given(struct labels *labels, const char *list, const char *name, struct problem *problem) {
  if (name[0] == '\0') return refuse_name(problem, list, "a label without a name", "");
  if (json_object_get(labels->numbers, name) != NULL) return refuse_name(problem, list, "twice: ", name);
  return add(labels, name, problem);
}

static bool read_config(struct labels *labels, const char *path, struct problem *problem) {
  json_error_t error;
  json_t *config = json_load_file(path, 0, &error);
  if (config == NULL) {
    rt_problem(problem, "%s:%d:%d: %s", path, error.line > 0 ? error.line : 1, error.column > 0 ? error.column : 1,
               error.text);
    return rt_help(problem, "give a JSON file with id2label, as `accel-gen data` writes next to labelled rows");
  }
  const json_t *names = json_object_get(config, "id2label");
  bool good = json_object_size(names) > 0 || refuse_name(problem, path, "the file has no id2label", "");
  for (size_t i = 0; good && i < json_object_size(names); i++) {
    char number[24];
    snprintf(number, sizeof number, "%zu", i);
    const char *name = json_string_value(json_object_get(names, number));
    good = name != NULL ? add_given(labels, path, name, problem)
                        : refuse_name(problem, path, "id2label has no name for ", number);
  }
  json_decref(config);
  return good;
}

char *labels_next(char **at) {
  char *name = *at, *next = strchr(name, ',');
  if (next != NULL) *next++ = '\0';
  *at = next;
  name += strspn(name, " ");
  for (size_t length = strlen(name); length > 0 && name[length - 1] == ' '; length--) name[length - 1] = '\0';
  return name;
}

static bool read_words(struct labels *labels, const char *list, struct problem *problem) {
  char *copy = strdup(list);
  bool good = copy != NULL || no_memory(problem);
  for (char *at = copy; good && at != NULL;) good = add_given(labels, list, labels_next(&at), problem);
  free(copy);
  return good;
}

bool labels_begin(struct labels *labels, const char *list, struct problem *problem) {
  *labels = (struct labels){.numbers = json_object(), .given = list != NULL};
  if (labels->numbers == NULL) return no_memory(problem);
  if (list == NULL) return true;
  return has_ending(list, ".json") ? read_config(labels, list, problem) : read_words(labels, list, problem);
}

void labels_end(struct labels *labels) {
  json_decref(labels->numbers);
  *labels = (struct labels){0};
}

int64_t labels_count(const struct labels *labels) {
  return (int64_t)json_object_size(labels->numbers);
}

/* ---- A record's label ---- */

static const char *listed(const struct labels *labels, char out[SHOWN]) {
  const char *name;
  json_t *number;
  size_t used = 0;
  out[0] = '\0';
  json_object_foreach(labels->numbers, name, number) {
    (void)number;
    int more = snprintf(out + used, SHOWN - used, "%s%s", used > 0 ? ", " : "", name);
    if (more < 0 || (size_t)more >= SHOWN - used) {
      out[used] = '\0';
      break;
    }
    used += (size_t)more;
  }
  return out;
}

int64_t labels_number_of(struct labels *labels, const char *name, struct problem *problem) {
  char all[SHOWN];
  if (name[0] == '\0') {
    rt_problem(problem, "the label is empty");
    rt_help(problem, "give each record a label, or leave out those without one with --on-bad-record skip");
    return -1;
  }
  const json_t *number = json_object_get(labels->numbers, name);
  if (number != NULL) return json_integer_value(number);
  if (!labels->given) return add(labels, name, problem) ? labels_count(labels) - 1 : -1;
  rt_problem(problem, "the label '%.100s' is not among those of --labels", name);
  rt_help(problem, "they are: %s", listed(labels, all));
  return -1;
}

int64_t labels_number(struct labels *labels, const json_t *value, struct problem *problem) {
  char number[32];
  if (json_is_string(value) && strlen(json_string_value(value)) < json_string_length(value)) {
    rt_problem(problem, "the label has a NUL in it");
    return -1;
  }
  if (json_is_string(value)) return labels_number_of(labels, json_string_value(value), problem);
  if (json_is_boolean(value)) return labels_number_of(labels, json_is_true(value) ? "true" : "false", problem);
  if (!json_is_integer(value)) {
    rt_problem(problem, "the label is neither a text nor a whole number");
    rt_help(problem, "--task regression takes numbers, --task multi-label lists of labels");
    return -1;
  }
  snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
  return labels_number_of(labels, number, problem);
}

void labels_cut(struct labels *labels, int64_t count) {
  const char *name;
  json_t *number;
  void *next;
  if (labels_count(labels) == count) return;
  json_object_foreach_safe(labels->numbers, next, name, number) if (json_integer_value(number) >= count)
      json_object_del(labels->numbers, name);
}

/* ---- All of them ---- */

struct named {
  const char *name;
  int64_t value; /* of a name that is a whole number */
  int32_t number;
};

/* Whether a name is a whole number as it is written. */
static bool is_whole(const char *name, int64_t *value) {
  char *end, again[32];
  errno = 0;
  *value = strtoll(name, &end, 10);
  snprintf(again, sizeof again, "%" PRId64, *value);
  return errno == 0 && *end == '\0' && strcmp(again, name) == 0;
}

static int by_value(const void *a, const void *b) {
  const struct named *p = a, *q = b;
  return (p->value > q->value) - (p->value < q->value);
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

bool labels_drop_unused(struct labels *labels, int32_t *numbers, int64_t count) {
  const size_t n = (size_t)labels_count(labels);
  int32_t *fresh = calloc(n + 1, sizeof *fresh); /* 1 of a used one, then its new number */
  if (fresh == NULL || labels->given) return free(fresh), fresh != NULL;
  for (int64_t i = 0; i < count; i++) fresh[numbers[i]] = 1;
  int32_t next = 0;
  const char *name;
  json_t *number;
  void *rest;
  json_object_foreach_safe(labels->numbers, rest, name, number) {
    if (fresh[json_integer_value(number)] == 0) json_object_del(labels->numbers, name);
  }
  for (size_t i = 0; i < n; i++)
    if (fresh[i] == 1) fresh[i] = next++;
  json_object_foreach(labels->numbers, name, number) json_integer_set(number, fresh[json_integer_value(number)]);
  for (int64_t i = 0; i < count; i++) numbers[i] = fresh[numbers[i]];
  free(fresh);
  return true;
}

int32_t *labels_sort(struct labels *labels) {
  size_t count = json_object_size(labels->numbers), i = 0;
  struct named *all = calloc(count + 1, sizeof *all);
  int32_t *numbers = calloc(count + 1, sizeof *numbers);
  json_t *sorted = json_object();
  const char *name;
  json_t *number;
  bool whole = true, good = all != NULL && numbers != NULL && sorted != NULL;
  if (good) json_object_foreach(labels->numbers, name, number) {
      all[i] = (struct named){.name = name, .number = (int32_t)json_integer_value(number)};
      whole &= is_whole(name, &all[i++].value);
    }
  if (good && !labels->given) qsort(all, count, sizeof *all, whole ? by_value : by_name);
  for (i = 0; good && i < count; i++) {
    numbers[all[i].number] = (int32_t)i;
    good = json_object_set_new(sorted, all[i].name, json_integer((json_int_t)i)) == 0;
  }
  if (good) {
    json_decref(labels->numbers);
    labels->numbers = json_incref(sorted);
  } else {
    free(numbers);
  }
  free(all);
  json_decref(sorted);
  return good ? numbers : NULL;
}

bool labels_write(const struct labels *labels, const char *path, const char *problem_type, struct problem *problem) {
  json_t *names = json_object(), *root = json_object();
  const char *name;
  json_t *number;
  bool good = names != NULL && root != NULL;
  if (labels != NULL) {
    json_object_foreach(labels->numbers, name, number) {
      char key[24];
      snprintf(key, sizeof key, "%" JSON_INTEGER_FORMAT, json_integer_value(number));
      good = good && json_object_set_new(names, key, json_string(name)) == 0;
    }
    good = good && json_object_set(root, "id2label", names) == 0 &&
           json_object_set(root, "label2id", labels->numbers) == 0;
  }
  json_int_t count = labels != NULL ? (json_int_t)labels_count(labels) : 1;
  good = good && json_object_set_new(root, "num_labels", json_integer(count)) == 0 &&
         (problem_type == NULL || json_object_set_new(root, "problem_type", json_string(problem_type)) == 0);
  char *text = good ? json_dumps(root, JSON_INDENT(2)) : NULL;
  json_decref(names);
  json_decref(root);
  if (text == NULL) return no_memory(problem);
  size_t length = strlen(text);
  text[length] = '\n'; /* in place of its NUL */
  good = rt_write_file(path, BY_RENAME, text, length + 1, NULL, problem);
  free(text);
  return good;
}
