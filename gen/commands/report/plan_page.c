#include "gen/commands/report/plan_page.h"

#include <string.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/commands/report/memory.h"

/* ---- The lines of the text ---- */

enum { NAME_COLUMNS = 10 };

/* Bytes of a line's name: what is in the columns of names, where the text comes after these; else its first word. */
static size_t name_length(const char *line) {
  size_t length = strcspn(line, "\n");
  if (length <= NAME_COLUMNS || line[NAME_COLUMNS - 1] != ' ') return strcspn(line, " \n");
  for (length = NAME_COLUMNS; length > 0 && line[length - 1] == ' ';) length--;
  return length;
}

/* The rest of a line; where it ends. */
static const char *take_line(struct text *out, const char *line) {
  line += strspn(line, " ");
  const size_t length = strcspn(line, "\n");
  if (out->length > 0) text_puts(out, "\n");
  text_add(out, line, length);
  return line + length + (line[length] == '\n');
}

/* [{name, text, more, n_more}]. A line that begins with a blank continues the one before: `more` has those. */
static struct jinja_value lines_of_plan(struct arena *arena, const char *text) {
  struct jinja_value list = jinja_list(arena);
  while (*text != '\0') {
    struct jinja_value row = jinja_map(arena);
    const size_t name = name_length(text);
    struct text first = text_in(arena), more = text_in(arena);
    int count = 0;
    jinja_set(arena, row, "name", page_text(arena, arena_copy(arena, text, name)));
    text = take_line(&first, text + name);
    for (; *text == ' '; count++) text = take_line(&more, text);
    jinja_set(arena, row, "text", page_text(arena, text_string(&first)));
    jinja_set(arena, row, "more", page_text(arena, text_string(&more)));
    jinja_set(arena, row, "n_more", jinja_int(count));
    jinja_push(arena, list, row);
  }
  return list;
}

/* ---- Memory that has no picture ---- */

static void add_class(struct arena *arena, struct jinja_value list, enum occupied kind, int64_t bytes, int64_t total) {
  struct jinja_value value = jinja_map(arena);
  if (bytes == 0) return;
  const char *part = arena_printf(arena, "%.1f", 100.0 * (double)bytes / (double)total);
  jinja_set(arena, value, "kind", jinja_int(kind));
  jinja_set(arena, value, "name", jinja_string(arena, occupied_names[kind]));
  jinja_set(arena, value, "bytes", jinja_string(arena, bytes_text(arena, bytes)));
  jinja_set(arena, value, "part", jinja_string(arena, part));
  jinja_push(arena, list, value);
}

static struct jinja_value classes_of(struct arena *arena, const struct memory_bytes *bytes) {
  struct jinja_value list = jinja_list(arena);
  const int64_t total = bytes->total > 0 ? bytes->total : 1;
  add_class(arena, list, OCCUPIED_WEIGHTS, bytes->weights + bytes->cache, total);
  add_class(arena, list, OCCUPIED_GRADIENTS, bytes->gradients, total);
  add_class(arena, list, OCCUPIED_OPTIMIZER, bytes->optimizer, total);
  add_class(arena, list, OCCUPIED_AVERAGES, bytes->averages, total);
  add_class(arena, list, OCCUPIED_BATCH, bytes->batch, total);
  add_class(arena, list, OCCUPIED_ACTIVATIONS, bytes->activations, total);
  add_class(arena, list, OCCUPIED_SCRATCH, bytes->scratch, total);
  add_class(arena, list, OCCUPIED_CHECKPOINT, bytes->checkpoint, total);
  return list;
}

int plan_page_write(const struct compilation *compilation, const char *text, const char *json) {
  struct arena *arena = compilation->arena;
  struct program *program = compilation->program;
  struct jinja_value page = jinja_map(arena);
  struct inputs inputs = inputs_in(arena);
  inputs_add_compilation(&inputs, compilation);
  const struct occupancy *occupancy = occupancy_of(program);
  jinja_set(arena, page, "job", page_text(arena, compilation->options->argument));
  jinja_set(arena, page, "lines", lines_of_plan(arena, text));
  jinja_set(arena, page, "memory", occupancy != NULL ? memory_value(arena, occupancy) : jinja_none());
  const bool staged = program->kind == PROGRAM_TRAIN && program->ranks.pipeline.stages > 0;
  jinja_set(arena, page, "staged_memory", staged ? memory_of_stages(arena, program) : jinja_none());
  jinja_set(arena, page, "bytes", jinja_string(arena, bytes_text(arena, program->figures.bytes.total)));
  jinja_set(arena, page, "classes", classes_of(arena, &program->figures.bytes));
  page_add_mesh(arena, page, program);
  page_add_schedule(arena, page, program);
  jinja_set(arena, page, "data", page_json(arena, json));
  return page_write(compilation->options, "plan.html.j2", page, &inputs, compilation->options->html);
}
