#include "gen/plan/choose.h"

#include <string.h>

#include "gen/base/text.h"
#include "gen/tuning/tuning.h"

/* A way must be so much faster than the first to take its place: what is measured again differs by as much. */
static const double least_gain = 0.03;

int64_t tuned_threads(const struct program *program) {
  const struct tuning *tuning = program->tuning;
  return program->job->devices.threads > 0 || tuning == NULL ? program->job->devices.threads : tuning->machine.cores;
}

static int fastest(const struct choice *choice) {
  double first = tuned_seconds(choice->measured, choice->ways[0]), least = first * (1 - least_gain);
  int found = 0;
  for (int i = 1; i < choice->n_ways; i++) {
    double seconds = tuned_seconds(choice->measured, choice->ways[i]);
    if (seconds <= 0 || (least > 0 && seconds >= least)) continue;
    least = seconds;
    found = i;
  }
  return found;
}

static struct choice decide(const struct program *program, struct choice choice) {
  const struct tuning *tuning = program->tuning;
  if (tuning == NULL) return choice;
  if (tuning->forced >= 0) {
    choice.taken = tuning->forced < choice.n_ways ? tuning->forced : 0;
    return choice;
  }
  choice.measured = tuning_find(tuning, choice.subject, tuned_threads(program), 0);
  if (choice.measured != NULL) choice.taken = fastest(&choice);
  return choice;
}

const char *choose(struct program *program, const char *subject, const char *what, const char *const *ways,
                   int n_ways) {
  if (n_ways == 1) return ways[0];
  for (int i = 0; i < program->choices.count; i++) {
    const struct choice *before = &program->choices.items[i];
    if (strcmp(before->subject, subject) == 0) return before->ways[before->taken];
  }
  size_t size = (size_t)n_ways * sizeof *ways;
  const char **kept = arena_alloc(program->arena, size);
  memcpy(kept, ways, size);
  struct choice choice =
      decide(program, (struct choice){.subject = subject, .what = what, .ways = kept, .n_ways = n_ways});
  ARENA_PUSH(program->arena, program->choices, choice);
  return kept[choice.taken];
}

/* ---- For people and programs ---- */

/* What a choice is for, in a few words: the product's or the kernel's name, or the subject where it is not one's. */
static const char *name_of(const struct program *program, const struct choice *choice) {
  for (int i = 0; i < program->products.count; i++)
    if (strcmp(program->products.items[i].subject, choice->subject) == 0) return program->products.items[i].name;
  for (int i = 0; i < program->n_kernels; i++)
    if (strcmp(program->kernels[i]->subject, choice->subject) == 0) return program->kernels[i]->name;
  return choice->subject;
}

static double seconds_of(const struct choice *choice, int way) {
  return choice->measured != NULL ? tuned_seconds(choice->measured, choice->ways[way]) : 0;
}

/* One that was measured: what it is for, the way that is taken, and the others. */
static void add_measured(struct text *text, const struct program *program, const struct choice *choice) {
  bool first = true;
  text_printf(text, "choices   %s of %s: %s, %.4g ms (not", choice->what, name_of(program, choice),
              choice->ways[choice->taken], 1e3 * seconds_of(choice, choice->taken));
  for (int i = 0; i < choice->n_ways; i++) {
    if (i == choice->taken) continue;
    text_printf(text, "%s%s", first ? " " : ", ", choice->ways[i]);
    if (seconds_of(choice, i) > 0) text_printf(text, " %.4g ms", 1e3 * seconds_of(choice, i));
    first = false;
  }
  text_puts(text, ")\n");
}

/* How many like `choice`, by rule and of its way, there are up to its own place; and in all. */
static int count_alike(const struct program *program, int place, bool all) {
  const struct choice *choice = &program->choices.items[place];
  int count = 0;
  for (int i = 0; i < (all ? program->choices.count : place); i++) {
    const struct choice *other = &program->choices.items[i];
    count += other->measured == NULL && strcmp(other->what, choice->what) == 0 &&
             strcmp(other->ways[other->taken], choice->ways[choice->taken]) == 0;
  }
  return count;
}

/* Those of the rules, in one line. */
static void add_by_rule(struct text *text, const struct program *program) {
  const char *before = "choices   by rule: ";
  for (int i = 0; i < program->choices.count; i++) {
    const struct choice *choice = &program->choices.items[i];
    if (choice->measured != NULL || count_alike(program, i, false) > 0) continue;
    text_printf(text, "%s%s %s", before, choice->what, choice->ways[choice->taken]);
    if (count_alike(program, i, true) > 1) text_printf(text, " (%d)", count_alike(program, i, true));
    before = ", ";
  }
  if (before[0] == ',') text_puts(text, "; accel-gen tune measures\n");
}

const char *choices_text(const struct program *program) {
  struct text text = text_in(program->arena);
  for (int i = 0; i < program->choices.count; i++)
    if (program->choices.items[i].measured != NULL) add_measured(&text, program, &program->choices.items[i]);
  add_by_rule(&text, program);
  return text_string(&text);
}

json_t *choices_json(const struct program *program) {
  json_t *list = json_array();
  for (int i = 0; i < program->choices.count; i++) {
    const struct choice *choice = &program->choices.items[i];
    json_t *ways = json_array(), *seconds = json_object();
    for (int k = 0; k < choice->n_ways; k++) {
      json_array_append_new(ways, json_string(choice->ways[k]));
      if (seconds_of(choice, k) > 0) json_object_set_new(seconds, choice->ways[k], json_real(seconds_of(choice, k)));
    }
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:o}", "of", name_of(program, choice), "subject", choice->subject,
                               "chooses", choice->what, "way", choice->ways[choice->taken], "ways", ways);
    json_object_set_new(object, "by", json_string(choice->measured != NULL ? "measurement" : "rule"));
    if (choice->measured != NULL) json_object_set_new(object, "seconds", json_incref(seconds));
    json_decref(seconds);
    json_array_append_new(list, object);
  }
  return list;
}
