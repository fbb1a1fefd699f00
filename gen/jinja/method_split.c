/* Methods that part strings, and join them. */
#include "gen/jinja/scan.h"
#include "gen/jinja/support.h"

static void push_part(struct run *run, struct jinja_value list, const char *from, const char *to,
                      struct jinja_value self) {
  jj_spend(run, 1);
  jj_push(run->pool, list.as.list, jj_like(jj_copy_text(run, from, (size_t)(to - from)), self));
}

static struct jinja_value split_space(struct run *run, struct jinja_value self, int64_t most) {
  struct jinja_value parts = jj_list(run->pool, FLAVOUR_LIST, 0);
  const char *at = self.as.string->bytes, *end = at + self.as.string->length;
  while (true) {
    at += jj_scan_space(at, (size_t)(end - at));
    if (at == end) return parts;
    const char *stop = at;
    int size;
    while (stop < end && !jj_is_space_code(jj_utf8_decode(stop, (size_t)(end - stop), &size))) stop += size;
    if (most == 0) {
      push_part(run, parts, at, end, self);
      return parts;
    }
    push_part(run, parts, at, stop, self);
    if (most > 0) most--;
    at = stop;
  }
}

static struct jinja_value split_by(struct run *run, struct jinja_value self, const struct jinja_string *by,
                                   int64_t most) {
  struct jinja_value parts = jj_list(run->pool, FLAVOUR_LIST, 0);
  const char *at = self.as.string->bytes, *end = at + self.as.string->length;
  if (by->length == 0) jj_fail(run, "empty separator");
  for (; most != 0; most -= most > 0) {
    const char *found = jj_find_bytes(at, (size_t)(end - at), by->bytes, by->length);
    if (found == NULL) break;
    push_part(run, parts, at, found, self);
    at = found + by->length;
  }
  push_part(run, parts, at, end, self);
  return parts;
}

METHOD(split) {
  const struct jinja_string *by = jj_arg_string_or_none(run, call, 0);
  int64_t most = jj_arg_int(run, call, 1, -1);
  return by != NULL ? split_by(run, self, by, most) : split_space(run, self, most);
}

static void reverse_items(struct jinja_list *list) {
  for (int i = 0, j = list->count - 1; i < j; i++, j--) {
    struct jinja_value item = list->items[i];
    list->items[i] = list->items[j];
    list->items[j] = item;
  }
}

/* Splits from the right: `most` parts there, and what is left of them. */
static struct jinja_value rsplit_space(struct run *run, struct jinja_value self, int64_t most) {
  struct jinja_value parts = jj_list(run->pool, FLAVOUR_LIST, 0);
  const char *start = self.as.string->bytes, *end = start + self.as.string->length;
  while (true) {
    size_t space;
    while ((space = jj_scan_space_before(start, (size_t)(end - start))) > 0) end -= space;
    if (start == end) break;
    const char *from = end;
    while (from > start && jj_scan_space_before(start, (size_t)(from - start)) == 0) from--;
    if (most == 0) from = start;
    push_part(run, parts, from, end, self);
    if (most == 0) break;
    if (most > 0) most--;
    end = from;
  }
  reverse_items(parts.as.list);
  return parts;
}

METHOD(rsplit) {
  const struct jinja_string *by = jj_arg_string_or_none(run, call, 0);
  int64_t most = jj_arg_int(run, call, 1, -1);
  if (by == NULL) return rsplit_space(run, self, most);
  if (by->length == 0) jj_fail(run, "empty separator");
  struct jinja_value parts = jj_list(run->pool, FLAVOUR_LIST, 0);
  const char *start = self.as.string->bytes;
  size_t length = self.as.string->length;
  for (; most != 0; most -= most > 0) {
    const char *found = jj_find_last_bytes(start, length, by);
    if (found == NULL) break;
    push_part(run, parts, found + by->length, start + length, self);
    length = (size_t)(found - start);
  }
  push_part(run, parts, start, start + length, self);
  reverse_items(parts.as.list);
  return parts;
}

METHOD(splitlines) {
  return jj_lines(run, self, jj_arg_true(run, call, 0, false));
}

METHOD(join) {
  const struct jinja_list *items = jj_iterate(run, call->items[0]);
  struct jinja_value *texts = jj_alloc(run->pool, (size_t)(items->count + 1) * sizeof *texts);
  for (int i = 0; i < items->count; i++) {
    texts[i] = items->items[i];
    if (texts[i].kind == JINJA_UNDEFINED) jj_fail_undefined(run, texts[i]);
    if (self.safe) texts[i] = jj_escape(run, texts[i]);
    if (texts[i].kind != JINJA_STRING) {
      jj_fail(run, "sequence item %d: expected str instance, %s found", i, jj_type_name(texts[i]));
    }
  }
  return jj_like(jj_join(run, self.as.string, texts, items->count), self);
}

METHOD(partition) {
  const struct jinja_string *by = jj_arg_string(run, call, 0), *text = self.as.string;
  if (by->length == 0) jj_fail(run, "empty separator");
  struct jinja_value parts = jj_list(run->pool, FLAVOUR_TUPLE, 3);
  const char *end = text->bytes + text->length, *at = jj_find_bytes(text->bytes, text->length, by->bytes, by->length);
  const char *after = at != NULL ? at + by->length : end;
  if (at == NULL) at = end;
  push_part(run, parts, text->bytes, at, self);
  push_part(run, parts, at, after, self);
  push_part(run, parts, after, end, self);
  return parts;
}

METHOD(rpartition) {
  const struct jinja_string *by = jj_arg_string(run, call, 0), *text = self.as.string;
  if (by->length == 0) jj_fail(run, "empty separator");
  struct jinja_value parts = jj_list(run->pool, FLAVOUR_TUPLE, 3);
  const char *at = jj_find_last_bytes(text->bytes, text->length, by), *end = text->bytes + text->length;
  const char *after = at != NULL ? at + by->length : text->bytes;
  if (at == NULL) at = text->bytes;
  push_part(run, parts, text->bytes, at, self);
  push_part(run, parts, at, after, self);
  push_part(run, parts, after, end, self);
  return parts;
}

const struct method jj_methods_split[] = {
    {W_split, method_split, {{"sep", "maxsplit"}, 0, false}},
    {W_rsplit, method_rsplit, {{"sep", "maxsplit"}, 0, false}},
    {W_splitlines, method_splitlines, {{"keepends"}, 0, false}},
    {W_join, method_join, {{"/iterable"}, 1, false}},
    {W_partition, method_partition, {{"/sep"}, 1, false}},
    {W_rpartition, method_rpartition, {{"/sep"}, 1, false}},
    {.apply = NULL},
};
