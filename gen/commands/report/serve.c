#include "gen/commands/report/serve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "gen/base/text.h"
#include "gen/commands/cli/files.h"
#include "gen/server/server.h"
#include "runtime/base/clock.h"
#include "runtime/base/terminal.h"

enum { USUAL_PORT = 6060 };

/* From one page to the next, so many times as long as one takes to make. */
static const double rest = 4;

struct served {
  const struct page_source *source;
  struct arena *arena; /* of the page; NULL: none was made */
  const char *state;   /* of the files that it was made of */
  const char *bytes;
  size_t length;
  double made, took; /* seconds: when, and how long */
};

/* ---- The page ---- */

static const char *state_of(struct arena *arena, const struct page_source *source) {
  struct text all = text_in(arena);
  for (int i = 0; i < source->count; i++) text_puts(&all, report_run_state(arena, source->arguments[i]));
  return digest_of(arena, text_string(&all), all.length);
}

/* The page of runs that cannot be shown, which says why. */
static bool make_wait(struct arena *arena, const struct page_source *source, const char *state, const char *problems,
                      struct jinja_output *output) {
  struct jinja_value page = jinja_map(arena), list = jinja_list(arena);
  struct text names = text_in(arena);
  for (int i = 0; i < source->count; i++) text_printf(&names, "%s%s", i > 0 ? ", " : "", source->arguments[i]);
  for (; *problems != '\0'; problems += strcspn(problems, "\n") + 1)
    jinja_push(arena, list, page_text(arena, arena_copy(arena, problems, strcspn(problems, "\n"))));
  jinja_set(arena, page, "names", page_text(arena, text_string(&names)));
  jinja_set(arena, page, "problems", list);
  jinja_set(arena, page, "data", jinja_string(arena, "{}"));
  return page_render(arena, "wait.html.j2", page, state, output);
}

static void make(struct served *served, const char *state) {
  struct arena *arena = arena_new();
  struct inputs inputs = inputs_in(arena);
  struct jinja_output output;
  const char *problems;
  const double began = rt_now();
  state = arena_string(arena, state);
  if (page_make(arena, served->source, state, &inputs, &output, &problems) != STATUS_OK &&
      !make_wait(arena, served->source, state, problems, &output)) {
    arena_free(arena);
    return;
  }
  arena_free(served->arena);
  served->arena = arena;
  served->state = state;
  served->bytes = output.text;
  served->length = output.length;
  served->made = rt_now();
  served->took = served->made - began;
}

/* ---- What is asked for ---- */

/* Whether a page of another state is to be made: runs that change all the time do not fill a processor. */
static bool is_due(const struct served *served, const char *state) {
  return served->arena == NULL || (strcmp(state, served->state) != 0 && rt_now() - served->made > rest * served->took);
}

static void answer_with(void *context, const char *path, struct server_answer *answer) {
  struct served *served = context;
  const bool asks_state = strcmp(path, "/state") == 0;
  if (!asks_state && strcmp(path, "/") != 0) return;
  struct arena *arena = arena_new();
  const char *state = state_of(arena, served->source);
  const bool due = is_due(served, state);
  if (due && (!asks_state || served->arena == NULL)) make(served, state);
  if (asks_state && served->arena != NULL) {
    static char text[65];
    snprintf(text, sizeof text, "%s", due ? state : served->state);
    *answer = (struct server_answer){"text/plain; charset=utf-8", text, strlen(text)};
  } else if (served->arena != NULL) {
    *answer = (struct server_answer){"text/html; charset=utf-8", served->bytes, served->length};
  }
  arena_free(arena);
}

int report_serve(const struct options *options, const struct page_source *source) {
  struct served served = {.source = source};
  struct problem problem = {0};
  struct stat status;
  int port = options->port >= 0 ? options->port : USUAL_PORT;
  for (int i = 0; i < source->count; i++) {
    if (stat(source->arguments[i], &status) == 0) continue;
    rt_print(stderr, "accel-gen report: %s: %s\n    help: name the project folder of a run (checkpoint.project_dir)\n",
             source->arguments[i], strerror(errno));
    return STATUS_CANNOT;
  }
  const int socket = server_open(&port, &problem);
  if (socket >= 0) {
    rt_print(stdout, "http://127.0.0.1:%d/ has the page until Ctrl-C\n", port);
    fflush(stdout);
  }
  const bool good = socket >= 0 && server_run(socket, answer_with, &served, &problem);
  arena_free(served.arena);
  if (good) return STATUS_OK;
  rt_print(stderr, "accel-gen report: %s\n", problem.what);
  if (problem.help[0] != '\0') rt_print(stderr, "    help: %s\n", problem.help);
  return STATUS_CANNOT;
}
