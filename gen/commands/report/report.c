/* accel-gen report RUN... -o FILE.html: runs as one page, in a file or served. */
#include <stdio.h>
#include <string.h>

#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/report/memory.h"
#include "gen/commands/report/page.h"
#include "gen/commands/report/serve.h"
#include "runtime/base/terminal.h"

enum { MOST_RUNS = 16 };

static int write_page(const struct options *options, const struct page_source *source, struct inputs *inputs) {
  struct jinja_output output;
  const char *problems;
  const int status = page_make(options->arena, source, NULL, inputs, &output, &problems);
  for (; *problems != '\0'; problems += strcspn(problems, "\n") + 1)
    rt_print(stderr, "accel-gen report: %.*s\n", (int)strcspn(problems, "\n"), problems);
  if (status != STATUS_OK) return status;
  return write_file(inputs, options->output, output.text, output.length) ? STATUS_OK : STATUS_CANNOT;
}

int command_report(const struct options *options) {
  struct inputs inputs = inputs_in(options->arena);
  struct page_source source = {.arguments = options->arguments, .count = options->n_arguments};
  if (source.count > MOST_RUNS) {
    rt_print(stderr, "accel-gen report: %d runs are more than a page can show: it has at most %d\n", source.count,
             MOST_RUNS);
    return STATUS_BAD_JOB;
  }
  if (!memory_plan(options, &inputs, &source.planned)) return STATUS_BAD_JOB;
  return options->serves ? report_serve(options, &source) : write_page(options, &source, &inputs);
}
