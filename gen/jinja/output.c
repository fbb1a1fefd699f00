/* Output: the buffers that a rendering writes to, captures of parts of it, and the source map. */
#include <string.h>

#include "gen/jinja/run.h"

void jj_buffer_grow(struct run *run, size_t more) {
  struct buffer *out = run->out;
  size_t need = out->length + more;
  if (need > run->max_output) jj_fail(run, "the output is too large: the limit is %zu bytes", run->max_output);
  size_t wider = out->capacity > 0 ? out->capacity * 2 : 1024;
  while (wider < need) wider *= 2;
  if (wider > run->max_output) wider = run->max_output; /* so that the limit is exact */
  char *bytes = arena_alloc(run->env->arena, wider + 1);
  if (out->length > 0) memcpy(bytes, out->bytes, out->length);
  out->bytes = bytes;
  out->capacity = wider;
}

static void add_written(struct run *run, struct written written) {
  struct span_list *spans = &run->out->spans;
  if (spans->count == spans->capacity) {
    int wider = spans->capacity > 0 ? spans->capacity * 2 : 64;
    struct written *items = jj_alloc(run->pool, (size_t)wider * sizeof *items);
    if (spans->count > 0) memcpy(items, spans->items, (size_t)spans->count * sizeof *items);
    spans->items = items;
    spans->capacity = wider;
  }
  spans->items[spans->count++] = written;
}

static void note_gap(struct run *run, size_t start, size_t length, const struct node *node) {
  struct jinja_location location = {run->template->name, node->line, node->column};
  add_written(run, (struct written){start, length, false, location, run->link, run->item});
}

void jj_note_written(struct run *run, size_t start, const struct node *node) {
  size_t length = run->out->length - start;
  if (length == 0) return;
  struct jinja_location location = {run->template->name, node->line, node->column};
  add_written(run, (struct written){start, length, node->kind == N_TEXT, location, run->link, run->item});
}

/* The part of a span after its first `skip` bytes. */
static struct written without_prefix(struct written written, const char *bytes, size_t skip) {
  for (size_t i = 0; written.is_text && i < skip; i++) {
    bool newline = bytes[written.start + i] == '\n';
    written.location.line += newline;
    written.location.column = newline ? 1 : written.location.column + 1;
  }
  written.start += skip;
  written.length -= skip;
  return written;
}

/* Text that was captured keeps who wrote it: notes the spans of string[from, from + length) for the same bytes at the
 * output's end. Where `filler` is not NULL, what no span covers is noted as written there. */
static void copy_spans(struct run *run, const struct jinja_string *string, size_t from, size_t length,
                       const struct node *filler) {
  size_t end = from + length, covered = from, base = run->out->length;
  for (int i = 0; i < string->spans->count; i++) {
    struct written written = string->spans->items[i];
    if (written.start + written.length <= from || written.start >= end) continue;
    if (written.start < from) written = without_prefix(written, string->bytes, from - written.start);
    if (written.start + written.length > end) written.length = end - written.start;
    if (filler != NULL && written.start > covered)
      note_gap(run, base + covered - from, written.start - covered, filler);
    covered = written.start + written.length;
    written.start = base + written.start - from;
    add_written(run, written);
  }
  if (filler != NULL && end > covered) note_gap(run, base + covered - from, end - covered, filler);
}

void jj_write_part(struct run *run, const struct jinja_string *string, size_t from, size_t length) {
  if (run->mapped && string->spans != NULL) copy_spans(run, string, from, length, NULL);
  jj_write(run, string->bytes + from, length);
}

struct jinja_value jj_part(struct run *run, const struct jinja_string *string, size_t from, size_t length) {
  struct buffer *before = jj_capture_begin(run);
  jj_write_part(run, string, from, length);
  return jj_capture_end(run, before);
}

struct buffer *jj_capture_begin(struct run *run) {
  struct buffer *before = run->out, *buffer = run->env->buffers;
  if (buffer != NULL) {
    run->env->buffers = buffer->next;
  } else {
    buffer = arena_alloc(run->env->arena, sizeof *buffer);
    buffer->all_next = run->env->all_buffers;
    run->env->all_buffers = buffer;
  }
  buffer->length = 0;
  buffer->spans = (struct span_list){0};
  buffer->next = NULL;
  run->out = buffer;
  return before;
}

struct jinja_value jj_capture_end(struct run *run, struct buffer *before) {
  struct buffer *buffer = run->out;
  struct jinja_string *string = jj_new_text(run, buffer->length);
  if (buffer->length > 0) memcpy(string->bytes, buffer->bytes, buffer->length);
  if (run->mapped && buffer->spans.count > 0) {
    struct span_list *spans = jj_alloc(run->pool, sizeof *spans);
    *spans = buffer->spans;
    string->spans = spans;
  }
  buffer->next = run->env->buffers;
  run->env->buffers = buffer;
  run->out = before;
  return jj_string_value(string);
}

void jj_free_buffers(struct jinja_env *env) {
  env->buffers = NULL;
  for (struct buffer *buffer = env->all_buffers; buffer != NULL; buffer = buffer->all_next) {
    buffer->next = env->buffers;
    env->buffers = buffer;
  }
}

void jj_write_escaped(struct run *run, const char *bytes, size_t length) {
  size_t from = 0;
  for (size_t i = 0; i < length; i++) {
    const char *entity = bytes[i] == '&'    ? "&amp;"
                         : bytes[i] == '<'  ? "&lt;"
                         : bytes[i] == '>'  ? "&gt;"
                         : bytes[i] == '"'  ? "&#34;"
                         : bytes[i] == '\'' ? "&#39;"
                                            : NULL;
    if (entity == NULL) continue;
    jj_write(run, bytes + from, i - from);
    jj_write(run, entity, strlen(entity));
    from = i + 1;
  }
  jj_write(run, bytes + from, length - from);
}

static void write_int(struct run *run, int64_t value) {
  struct buffer *out = run->out;
  if (out->capacity - out->length >= 24) {
    out->length += (size_t)jj_int_text(value, out->bytes + out->length);
    return;
  }
  char text[24];
  int length = jj_int_text(value, text);
  jj_write(run, text, (size_t)length);
}

void jj_write_value(struct run *run, struct jinja_value value) {
  if (value.kind == JINJA_STRING) {
    const struct jinja_string *string = value.as.string;
    if (run->autoescape && !value.safe) {
      jj_write_escaped(run, string->bytes, string->length);
      return;
    }
    if (run->mapped && string->spans != NULL) copy_spans(run, string, 0, string->length, run->at);
    jj_write_piece(run, string->bytes, string->length);
  } else if (value.kind == JINJA_INT) {
    write_int(run, value.as.integer);
  } else if (run->autoescape) {
    jj_write_value(run, jj_escape(run, value));
  } else {
    jj_write_str(run, value);
  }
}

/* --- the source map for the caller --- */

struct mapper {
  struct run *run;
  const struct item *item; /* of the last span, whose list the next one may share */
  struct jinja_value *items;
  int item_count;
  struct jinja_span *spans;
  int count, capacity, line;
  size_t line_start;
};

static struct jinja_location *locations_of(struct mapper *m, const struct written *written, int *count) {
  *count = 1;
  for (const struct link *link = written->link; link != NULL; link = link->outer) ++*count;
  struct jinja_location *chain = arena_alloc(m->run->env->arena, (size_t)*count * sizeof *chain), *at = chain;
  *at++ = written->location;
  for (const struct link *link = written->link; link != NULL; link = link->outer) *at++ = link->location;
  return chain;
}

static void find_items(struct mapper *m, const struct item *innermost) {
  if (innermost == m->item) return;
  m->item = innermost;
  m->item_count = 0;
  for (const struct item *item = innermost; item != NULL; item = item->outer) m->item_count++;
  m->items = arena_alloc(m->run->env->arena, (size_t)m->item_count * sizeof *m->items);
  struct jinja_value *at = m->items;
  for (const struct item *item = innermost; item != NULL; item = item->outer) *at++ = item->value;
}

/* One span for the part of `written` that is on one line. */
static void map_written(struct mapper *m, const char *text, struct written written) {
  find_items(m, written.item);
  struct jinja_span span = {.items = m->items, .item_count = m->item_count};
  size_t at = written.start, end = written.start + written.length;
  while (at < end) {
    const char *newline = memchr(text + at, '\n', end - at);
    size_t stop = newline != NULL ? (size_t)(newline - text) + 1 : end;
    if (span.chain == NULL || written.is_text) span.chain = locations_of(m, &written, &span.chain_count);
    span.line = m->line;
    span.column = (int)(at - m->line_start) + 1;
    span.length = (int)(stop - at);
    m->spans = arena_grow(m->run->env->arena, m->spans, m->count, &m->capacity, sizeof *m->spans);
    m->spans[m->count++] = span;
    if (newline != NULL) {
      m->line++;
      m->line_start = stop;
    }
    written.location.line++;
    written.location.column = 1;
    at = stop;
  }
}

void jj_spans_of(struct run *run, struct jinja_output *output) {
  struct mapper mapper = {.run = run, .line = 1};
  for (int i = 0; i < run->out->spans.count; i++) map_written(&mapper, output->text, run->out->spans.items[i]);
  output->spans = mapper.spans;
  output->span_count = mapper.count;
}
