/* Operations on text that filters and methods share. */
#include <stdlib.h>

#include "gen/jinja/scan.h"
#include "gen/jinja/support.h"

const char *jj_find_bytes(const char *bytes, size_t length, const char *needle, size_t needle_length) {
  if (needle_length == 0) return bytes;
  const char *end = bytes + length;
  while ((size_t)(end - bytes) >= needle_length) {
    const char *at = memchr(bytes, needle[0], (size_t)(end - bytes) - needle_length + 1);
    if (at == NULL) return NULL;
    if (memcmp(at, needle, needle_length) == 0) return at;
    bytes = at + 1;
  }
  return NULL;
}

const char *jj_find_last_bytes(const char *bytes, size_t length, const struct jinja_string *needle) {
  for (size_t at = length + 1; at-- > 0;) {
    if (length - at >= needle->length && memcmp(bytes + at, needle->bytes, needle->length) == 0) return bytes + at;
  }
  return NULL;
}

/* --- case --- */

static uint32_t change_case(uint32_t code, char how, bool first) {
  switch (how) {
  case 'u':
    return jj_upper_code(code);
  case 'l':
    return jj_lower_code(code);
  case 's':
    return jj_upper_code(code) != code ? jj_upper_code(code) : jj_lower_code(code);
  default:
    return first ? jj_upper_code(code) : jj_lower_code(code);
  }
}

enum { SHARP_S = 0xDF }; /* the one letter here whose capital form is two */

static bool is_cased(uint32_t code) {
  return code == SHARP_S || jj_upper_code(code) != code || jj_lower_code(code) != code;
}

struct jinja_value jj_map_case(struct run *run, struct jinja_value text, char how) {
  const struct jinja_string *from = text.as.string;
  struct jinja_string *to = jj_new_text(run, from->length + from->length / 2 + 4); /* a letter can grow by a byte */
  size_t count = 0;
  bool first = true;
  for (size_t at = 0; at < from->length;) {
    int size;
    uint32_t code = jj_utf8_decode(from->bytes + at, from->length - at, &size);
    char changed[4];
    int changed_size = jj_utf8_encode(change_case(code, how, first), changed);
    bool capital = how == 'u' || how == 's' || (first && how != 'l');
    if (code == SHARP_S && capital) memcpy(changed, how == 'u' || how == 's' ? "SS" : "Ss", 2);
    if (size == 1 && code >= 0x80) changed_size = 1, changed[0] = (char)code; /* malformed bytes stay as they are */
    if (count + 4 > from->length + from->length / 2 + 4) break;
    memcpy(to->bytes + count, changed, (size_t)changed_size);
    count += (size_t)changed_size;
    at += (size_t)size;
    first = how == 't' ? !is_cased(code) : false;
  }
  to->length = count;
  to->bytes[count] = '\0';
  if (count == from->length) to->spans = from->spans; /* byte for byte the same offsets */
  return jj_like(jj_string_value(to), text);
}

/* --- strip, replace, pad --- */

static bool strips(const struct jinja_string *chars, const char *bytes, size_t length, int *size) {
  uint32_t code = jj_utf8_decode(bytes, length, size);
  if (chars == NULL) return jj_is_space_code(code);
  for (size_t at = 0; at < chars->length;) {
    int other;
    if (jj_utf8_decode(chars->bytes + at, chars->length - at, &other) == code) return true;
    at += (size_t)other;
  }
  return false;
}

static size_t last_start(const char *bytes, size_t length) {
  size_t start = length - 1;
  while (start > 0 && ((unsigned char)bytes[start] & 0xC0) == 0x80) start--;
  return start;
}

struct jinja_value jj_strip(struct run *run, struct jinja_value text, const struct jinja_string *chars, bool left,
                            bool right) {
  const char *from = text.as.string->bytes;
  size_t length = text.as.string->length;
  int size;
  while (left && length > 0 && strips(chars, from, length, &size)) {
    from += size;
    length -= (size_t)size;
  }
  while (right && length > 0) {
    size_t start = last_start(from, length);
    if (!strips(chars, from + start, length - start, &size)) break;
    length = start;
  }
  if (length == text.as.string->length) return text;
  return jj_like(jj_part(run, text.as.string, (size_t)(from - text.as.string->bytes), length), text);
}

/* Python puts `to` between all characters when `from` is empty. */
static struct jinja_value replace_empty(struct run *run, struct jinja_value text, const struct jinja_string *to,
                                        int64_t count) {
  const struct jinja_string *whole = text.as.string;
  struct buffer *before = jj_capture_begin(run);
  for (size_t at = 0; at <= whole->length;) {
    if (count != 0) jj_write(run, to->bytes, to->length);
    if (count > 0) count--;
    if (at == whole->length) break;
    int size;
    jj_utf8_decode(whole->bytes + at, whole->length - at, &size);
    jj_write(run, whole->bytes + at, (size_t)size);
    at += (size_t)size;
  }
  return jj_like(jj_capture_end(run, before), text);
}

struct jinja_value jj_replace(struct run *run, struct jinja_value text, const struct jinja_string *from,
                              const struct jinja_string *to, int64_t count) {
  if (from->length == 0) return replace_empty(run, text, to, count);
  const char *start = text.as.string->bytes, *at = start, *end = at + text.as.string->length;
  struct buffer *before = jj_capture_begin(run);
  while (count != 0) {
    const char *found = jj_find_bytes(at, (size_t)(end - at), from->bytes, from->length);
    if (found == NULL) break;
    jj_write_part(run, text.as.string, (size_t)(at - start), (size_t)(found - at));
    jj_write(run, to->bytes, to->length);
    at = found + from->length;
    if (count > 0) count--;
  }
  jj_write_part(run, text.as.string, (size_t)(at - start), (size_t)(end - at));
  return jj_like(jj_capture_end(run, before), text);
}

struct jinja_value jj_pad(struct run *run, struct jinja_value text, int64_t width, char how, const char *fill) {
  const struct jinja_string *string = text.as.string;
  int64_t count = (int64_t)jj_utf8_count(string->bytes, string->length);
  if (width <= count) return text;
  int64_t pad = width - count, left = how == 'l' ? 0 : how == 'r' ? pad : pad / 2 + (pad & width & 1);
  size_t fill_length = strlen(fill);
  if ((uint64_t)pad > run->max_output / fill_length)
    jj_fail(run, "the output is too large: the limit is %zu bytes", run->max_output);
  struct jinja_string *padded = jj_new_text(run, string->length + (size_t)pad * fill_length);
  char *to = padded->bytes;
  for (int64_t i = 0; i < left; i++, to += fill_length) memcpy(to, fill, fill_length);
  memcpy(to, string->bytes, string->length);
  to += string->length;
  for (int64_t i = left; i < pad; i++, to += fill_length) memcpy(to, fill, fill_length);
  return jj_like(jj_string_value(padded), text);
}

/* --- lines --- */

static bool ends_line(uint32_t code) {
  return (code >= 10 && code <= 13) || (code >= 28 && code <= 30) || code == 0x85 || code == 0x2028 || code == 0x2029;
}

struct jinja_value jj_lines(struct run *run, struct jinja_value text, bool keep_ends) {
  const struct jinja_string *string = text.as.string;
  struct jinja_value lines = jj_list(run->pool, FLAVOUR_LIST, 0);
  size_t start = 0;
  for (size_t at = 0; at < string->length;) {
    int size;
    uint32_t code = jj_utf8_decode(string->bytes + at, string->length - at, &size);
    size_t end = at;
    at += (size_t)size;
    if (!ends_line(code)) {
      if (at == string->length)
        end = at;
      else
        continue;
    } else if (code == '\r' && at < string->length && string->bytes[at] == '\n') {
      at++;
    }
    jj_spend(run, 1);
    size_t length = (keep_ends ? at : end) - start;
    jj_push(run->pool, lines.as.list, jj_like(jj_copy_text(run, string->bytes + start, length), text));
    start = at;
  }
  return lines;
}

static struct jinja_value join_mapped(struct run *run, const struct jinja_string *separator,
                                      const struct jinja_value *items, int count) {
  struct buffer *before = jj_capture_begin(run);
  for (int i = 0; i < count; i++) {
    if (i > 0) jj_write(run, separator->bytes, separator->length);
    jj_write_str(run, items[i]);
  }
  return jj_capture_end(run, before);
}

struct jinja_value jj_join(struct run *run, const struct jinja_string *separator, const struct jinja_value *items,
                           int count) {
  size_t length = 0;
  bool mapped = false;
  for (int i = 0; i < count; i++) {
    length += items[i].as.string->length + (i > 0 ? separator->length : 0);
    mapped |= items[i].as.string->spans != NULL;
  }
  if (mapped) return join_mapped(run, separator, items, count);
  struct jinja_string *all = jj_new_text(run, length);
  char *to = all->bytes;
  for (int i = 0; i < count; i++) {
    if (i > 0) {
      memcpy(to, separator->bytes, separator->length);
      to += separator->length;
    }
    memcpy(to, items[i].as.string->bytes, items[i].as.string->length);
    to += items[i].as.string->length;
  }
  return jj_string_value(all);
}

/* --- sorting: a merge sort, because the order of equals must stay --- */

struct sorter {
  struct run *run;
  struct jinja_value *keys, *items, *spare_keys, *spare_items;
  bool reverse, equal_first;
};

static bool before(const struct sorter *s, struct jinja_value a, struct jinja_value b) {
  if (s->equal_first && jj_same(s->run, a, b)) return false;
  return jj_less(s->run, a, b);
}

static void merge(struct sorter *s, int low, int middle, int high) {
  int left = low, right = middle;
  for (int to = low; to < high; to++) {
    bool take_right = left == middle;
    if (left < middle && right < high) {
      take_right = s->reverse ? before(s, s->keys[left], s->keys[right]) : before(s, s->keys[right], s->keys[left]);
    }
    int from = take_right ? right++ : left++;
    s->spare_keys[to] = s->keys[from];
    s->spare_items[to] = s->items[from];
  }
  memcpy(s->keys + low, s->spare_keys + low, (size_t)(high - low) * sizeof *s->keys);
  memcpy(s->items + low, s->spare_items + low, (size_t)(high - low) * sizeof *s->items);
}

static void sort_range(struct sorter *s, int low, int high) {
  if (high - low < 2) return;
  int middle = low + (high - low) / 2;
  jj_spend(s->run, high - low);
  sort_range(s, low, middle);
  sort_range(s, middle, high);
  merge(s, low, middle, high);
}

void jj_sort(struct run *run, struct jinja_value *keys, struct jinja_value *items, int count, bool reverse,
             bool equal_first) {
  struct sorter s = {.run = run, .keys = keys, .items = items, .reverse = reverse, .equal_first = equal_first};
  s.spare_keys = jj_alloc(run->pool, (size_t)(count + 1) * sizeof *keys);
  s.spare_items = jj_alloc(run->pool, (size_t)(count + 1) * sizeof *items);
  sort_range(&s, 0, count);
}
