#include "gen/program/choose.h"

#include <string.h>

#include "gen/base/text.h"
#include "gen/tuning/tuning.h"

/* A variant must be so much faster than the first to be chosen instead: what is measured again differs by as much. */
static const double least_gain = 0.03;

int64_t tuned_threads(const struct program *program) {
  const struct tuning *tuning = program->choices.tuning;
  return program->job->devices.threads > 0 || tuning == NULL ? program->job->devices.threads : tuning->machine.cores;
}

static int fastest(const struct choice *choice) {
  double first = tuned_seconds(choice->measured, choice->variants[0]), least = first * (1 - least_gain);
  int found = 0;
  for (int i = 1; i < choice->n_variants; i++) {
    double seconds = tuned_seconds(choice->measured, choice->variants[i]);
    if (seconds <= 0 || (least > 0 && seconds >= least)) continue;
    least = seconds;
    found = i;
  }
  return found;
}

static struct choice decide(const struct program *program, struct choice choice) {
  const struct tuning *tuning = program->choices.tuning;
  if (tuning == NULL) return choice;
  if (tuning->forced >= 0) {
    choice.taken = tuning->forced < choice.n_variants ? tuning->forced : 0;
    return choice;
  }
  choice.measured = tuning_find(tuning, choice.subject, tuned_threads(program), 0);
  if (choice.measured != NULL) choice.taken = fastest(&choice);
  return choice;
}

const char *choose(struct program *program, const char *subject, const char *what, const char *const *variants,
                   int n_variants) {
  if (n_variants == 1) return variants[0];
  for (int i = 0; i < program->choices.count; i++) {
    const struct choice *before = &program->choices.items[i];
    if (strcmp(before->subject, subject) == 0) return before->variants[before->taken];
  }
  size_t size = (size_t)n_variants * sizeof *variants;
  const char **copy = arena_alloc(program->arena, size);
  memcpy(copy, variants, size);
  struct choice choice =
      decide(program, (struct choice){.subject = subject, .what = what, .variants = copy, .n_variants = n_variants});
  ARENA_PUSH(program->arena, program->choices, choice);
  return copy[choice.taken];
}

/* ---- For people and programs ---- */

/* What a choice is for, in a few words: the matmul's or the kernel's name, or the subject where it is not one's. */
static const char *name_of(const struct program *program, const struct choice *choice) {
  for (int i = 0; i < program->library.gemms.count; i++)
    if (strcmp(program->library.gemms.items[i].subject, choice->subject) == 0)
      return program->library.gemms.items[i].name;
  for (int i = 0; i < program->kernels.count; i++)
    if (strcmp(program->kernels.items[i]->subject, choice->subject) == 0) return program->kernels.items[i]->name;
  return choice->subject;
}

static double seconds_of(const struct choice *choice, int variant) {
  return choice->measured != NULL ? tuned_seconds(choice->measured, choice->variants[variant]) : 0;
}

/* One choice: what it is for, the variant that is taken, and the others, each with its time and how much longer that
 * is. */
static void add_choice(struct text *text, const struct program *program, const struct choice *choice) {
  double taken = seconds_of(choice, choice->taken);
  text_printf(text, "choice    %s of %s: %s", choice->what, name_of(program, choice), choice->variants[choice->taken]);
  if (taken > 0) text_printf(text, ", %.4g ms", 1e3 * taken);
  const char *before = "; not ";
  for (int i = 0; i < choice->n_variants; i++) {
    if (i == choice->taken) continue;
    double seconds = seconds_of(choice, i);
    text_printf(text, "%s%s", before, choice->variants[i]);
    if (seconds > 0 && taken > 0)
      text_printf(text, " (%.4g ms, %+.0f %%)", 1e3 * seconds, 100 * (seconds - taken) / taken);
    before = ", ";
  }
  text_puts(text, choice->measured != NULL ? "\n" : "; by rule\n");
}

const char *choices_text(const struct program *program) {
  struct text text = text_in(program->arena);
  for (int i = 0; i < program->choices.count; i++) add_choice(&text, program, &program->choices.items[i]);
  return text_string(&text);
}

json_t *choices_json(const struct program *program) {
  json_t *list = json_array();
  for (int i = 0; i < program->choices.count; i++) {
    const struct choice *choice = &program->choices.items[i];
    json_t *variants = json_array(), *seconds = json_object();
    for (int k = 0; k < choice->n_variants; k++) {
      json_array_append_new(variants, json_string(choice->variants[k]));
      if (seconds_of(choice, k) > 0)
        json_object_set_new(seconds, choice->variants[k], json_real(seconds_of(choice, k)));
    }
    json_t *object =
        json_pack("{s:s, s:s, s:s, s:s, s:o}", "of", name_of(program, choice), "subject", choice->subject, "selects",
                  choice->what, "variant", choice->variants[choice->taken], "variants", variants);
    json_object_set_new(object, "by", json_string(choice->measured != NULL ? "measurement" : "rule"));
    if (choice->measured != NULL) json_object_set_new(object, "seconds", json_incref(seconds));
    json_decref(seconds);
    json_array_append_new(list, object);
  }
  return list;
}
