/* What was found, in lines. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "gen/base/text.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/verify/verify.h"

static const char *const words[] = {"equal", "agrees", "differs", "cannot tell"};

static const char *const subjects[SUBJECT_UPDATE] = {
    [SUBJECT_SAMPLES] = "samples",   [SUBJECT_PARAMETERS] = "parameters",
    [SUBJECT_LOSS] = "loss",         [SUBJECT_RATE] = "rate",
    [SUBJECT_NORM] = "norm",         [SUBJECT_SCALE] = "scale",
    [SUBJECT_STATES] = "states",     [SUBJECT_WEIGHTS] = "weights",
    [SUBJECT_AVERAGES] = "averages", [SUBJECT_BUFFERS] = "buffers",
    [SUBJECT_LEFT] = "left",
};

static void line(struct text *text, enum comparison comparison, const char *subject, const char *detail) {
  text_printf(text, "  %-12s %-14s %s\n", words[comparison], subject, detail);
}

static void write_finding(struct text *text, enum subject subject, const struct finding *finding) {
  struct text detail = text_in(text->arena);
  if (finding->numbers == 0) return;
  if (finding->different > 0) {
    text_printf(&detail, "%" PRId64 " of %" PRId64 " numbers; ", finding->different, finding->numbers);
    if (isfinite(finding->worst)) text_printf(&detail, "%.3g times the bound: ", finding->worst);
    text_puts(&detail, finding->where);
    line(text, COMPARED_DIFFERS, subjects[subject], text_string(&detail));
    return;
  }
  text_printf(&detail, "%" PRId64 " number%s", finding->numbers, finding->numbers == 1 ? "" : "s");
  if (!finding->exact) text_printf(&detail, ", at most %.2g of the bound off", finding->worst);
  line(text, finding->exact ? COMPARED_EQUAL : COMPARED_AGREES, subjects[subject], text_string(&detail));
}

/* Accumulation, in a sentence. */
static void write_accumulation(const struct verification *verify, struct text *text) {
  enum { SAME = 9 };
  const int count = (int)verify_micro_batches(verify->job), batch = verify->job->data.batch_size;
  const int ranks = (int)job_batch_ranks(verify->job);
  if (count <= 1) return;
  const bool same = verify->one >= 0 && verify->one < pow(10, -SAME);
  const bool draws = verify->reading.n_draws > 0;
  const char *how = draws             ? "one batch of all of them would draw other random numbers"
                    : verify->one < 0 ? "one batch of all of them was not read"
                    : same            ? "as one batch of all of them would be"
                                      : "which one batch of all of them would not be";
  struct text detail = text_in(text->arena);
  text_printf(&detail, "%d micro-batches of %d", count, batch);
  if (ranks > 1) text_printf(&detail, ", %d of each of %d ranks,", count / ranks, ranks);
  text_printf(&detail, " are averaged by their %s, %s",
              verify->job->accumulation.normalize == NORMALIZE_TOKENS ? "targets" : "number", how);
  if (verify->one >= 0) text_printf(&detail, " (the gradients are %.2g apart)", verify->one);
  line(text, verify->one >= 0 || draws ? COMPARED_AGREES : COMPARED_UNKNOWN, "accumulation", text_string(&detail));
}

/* The functions that were called by themselves; the number of those that differ. */
static int write_functions(const struct verification *verify, struct text *text) {
  int different = 0;
  if (!verify->options->functions || verify->functions.count == 0) return 0;
  text_puts(text, "its functions, each by itself\n");
  for (int i = 0; i < verify->functions.count; i++) {
    const struct function_finding *function = &verify->functions.items[i];
    const struct kernel_finding *found = &function->found;
    struct text detail = text_in(text->arena);
    text_printf(&detail, "%-28s %s", function->name, found->formula);
    if (found->comparison == COMPARED_AGREES && found->worst == 0) text_puts(&detail, ", bit for bit");
    if (found->comparison == COMPARED_AGREES && found->worst > 0)
      text_printf(&detail, ", at most %.2g of the bound off", found->worst);
    if (found->comparison == COMPARED_DIFFERS) text_printf(&detail, ": %s", found->where);
    different += found->comparison == COMPARED_DIFFERS;
    text_printf(text, "  %-12s %s\n", words[found->comparison], text_string(&detail));
  }
  text_printf(text, "%d more call these or compute with the arena; the steps compare them\n", verify->n_calling);
  return different;
}

static void write_limits(const struct verification *verify, struct text *text) {
  struct text steps = text_in(text->arena);
  for (int i = 0; i < verify->n_steps; i++) text_printf(&steps, "%s%" PRId64, i > 0 ? ", " : "", verify->steps[i]);
  text_printf(text, "run from step %s; what other steps do is not known\n", text_string(&steps));
  if (verify->tokens > 0 && verify->tokens_seen < verify->tokens)
    text_printf(text,
                "%" PRId64 " of %" PRId64 " tokens of the vocabulary were in the data; what is done to the others is "
                "not known\n",
                verify->tokens_seen, verify->tokens);
  else if (verify->tokens > 0)
    text_printf(text, "all %" PRId64 " tokens of the vocabulary were in the data\n", verify->tokens);
  if (!verify->isolated)
    text_puts(text, "the program ran with the network: the system does not let it be taken away\n");
}

int verify_report(const struct verification *verify) {
  struct text text = text_in(verify->arena);
  int64_t different = 0;
  text_printf(&text, "%s: the arithmetic of %s\n", verify->options->argument, verify->options->job);
  for (int i = 0; i < SUBJECT_UPDATE; i++) {
    write_finding(&text, (enum subject)i, &verify->findings[i]);
    different += verify->findings[i].different;
  }
  if (verify->unknown != NULL)
    line(&text, COMPARED_UNKNOWN, "the rest", verify->unknown);
  else
    write_accumulation(verify, &text);
  different += write_functions(verify, &text);
  if (verify->n_steps > 0) write_limits(verify, &text);
  const struct inputs none = {.arena = verify->arena};
  const char *output = verify->options->output != NULL ? verify->options->output : "-";
  if (!write_lines(&none, output, text_string(&text))) return STATUS_BAD_JOB;
  return different > 0 ? STATUS_CANNOT : verify->unknown != NULL ? STATUS_BAD_JOB : STATUS_OK;
}
