/* urlize: addresses in a text become links. */
#include "gen/jinja/scan.h"
#include "gen/jinja/support.h"

struct link_style {
  struct run *run;
  int64_t trim; /* characters of the shown address; -1: all */
  const char *rel, *target;
  const struct jinja_list *schemes;
};

static bool starts(const char *bytes, size_t length, const char *with) {
  size_t count = strlen(with);
  return length > count && memcmp(bytes, with, count) == 0;
}

/* A host name: labels of letters, digits and hyphens with a dot between them. */
static bool is_host(const char *bytes, size_t length) {
  bool dot = false;
  size_t label = 0;
  for (size_t i = 0; i < length; i++) {
    char c = bytes[i];
    if (c == '/' || c == '?' || c == '#' || c == ':') {
      length = i;
      break;
    }
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (c == '.' && label == 0) return false;
    if (!word && c != '.') return false;
    dot |= c == '.';
    label = c == '.' ? 0 : label + 1;
  }
  return dot && label >= 2;
}

static bool is_email(const char *bytes, size_t length) {
  const char *at = memchr(bytes, '@', length);
  if (at == NULL || at == bytes || memchr(bytes, ':', length) != NULL) return false;
  size_t host = length - (size_t)(at + 1 - bytes);
  if (memchr(at + 1, '@', host) != NULL || memchr(at + 1, '/', host) != NULL) return false;
  return is_host(at + 1, host);
}

static void write_text(struct run *run, const char *text) {
  jj_write(run, text, strlen(text));
}

static void write_link(const struct link_style *style, const char *prefix, const char *bytes, size_t length,
                       bool attributes) {
  struct run *run = style->run;
  write_text(run, "<a href=\"");
  write_text(run, prefix);
  jj_write(run, bytes, length);
  write_text(run, "\"");
  if (attributes && style->rel[0] != '\0') {
    write_text(run, " rel=\"");
    jj_write_escaped(run, style->rel, strlen(style->rel));
    write_text(run, "\"");
  }
  if (attributes && style->target != NULL) {
    write_text(run, " target=\"");
    jj_write_escaped(run, style->target, strlen(style->target));
    write_text(run, "\"");
  }
  write_text(run, ">");
  size_t shown = length;
  bool cut = attributes && style->trim >= 0 && (int64_t)jj_utf8_count(bytes, length) > style->trim;
  if (cut) shown = jj_utf8_offset(bytes, length, (size_t)style->trim);
  jj_write(run, bytes, shown);
  if (cut) write_text(run, "...");
  write_text(run, "</a>");
}

static bool own_scheme(const struct link_style *style, const char *bytes, size_t length) {
  for (int i = 0; style->schemes != NULL && i < style->schemes->count; i++) {
    struct jinja_value scheme = style->schemes->items[i];
    if (scheme.kind == JINJA_STRING && starts(bytes, length, scheme.as.string->bytes)) return true;
  }
  return false;
}

static bool web_address(const char *bytes, size_t length) {
  size_t skip = starts(bytes, length, "https://") ? 8 : starts(bytes, length, "http://") ? 7 : 0;
  if (skip == 0) return starts(bytes, length, "www.") && is_host(bytes, length);
  return is_host(bytes + skip, length - skip) || starts(bytes + skip, length - skip, "localhost");
}

/* One word between blanks: brackets and marks around it are not part of an address. */
static void write_word(const struct link_style *style, const char *bytes, size_t length) {
  size_t from = 0, to = length;
  while (from < to && strchr("(<", bytes[from]) != NULL) from++;
  if (to - from > 4 && memcmp(bytes + from, "&lt;", 4) == 0) from += 4;
  while (to > from && strchr(".,\n)>", bytes[to - 1]) != NULL) to--;
  if (to - from > 4 && memcmp(bytes + to - 4, "&gt;", 4) == 0) to -= 4;
  const char *word = bytes + from;
  size_t count = to - from;
  jj_write(style->run, bytes, from);
  if (web_address(word, count)) {
    bool scheme = starts(word, count, "http");
    write_link(style, scheme ? "" : "https://", word, count, true);
  } else if (starts(word, count, "mailto:") && is_email(word + 7, count - 7)) {
    write_link(style, "mailto:", word + 7, count - 7, false);
  } else if (is_email(word, count)) {
    write_link(style, "mailto:", word, count, false);
  } else if (own_scheme(style, word, count)) {
    write_link(style, "", word, count, true);
  } else {
    jj_write(style->run, word, count);
  }
  jj_write(style->run, bytes + to, length - to);
}

/* The words of rel="…", each once, in order. */
static const char *rel_words(struct run *run, const struct call *call, bool nofollow) {
  bool own = jj_given(call, 3) && call->items[3].kind != JINJA_NONE;
  struct call none = {0}, blank = {.items = (struct jinja_value[]){jj_cstr(run->pool, " ")}, .count = 1};
  struct jinja_value words = jj_cstr(run->pool, nofollow ? " nofollow noopener" : " noopener");
  if (own) words = jj_binary(run, OP_ADD, (jj_arg_string(run, call, 3), call->items[3]), words);
  words = jj_find_method(words, W_split)->apply(run, words, &none);
  words = jj_apply_filter(run, jj_find_filter("sort"), words, &none);
  words = jj_apply_filter(run, jj_find_filter("unique"), words, &none);
  return jj_apply_filter(run, jj_find_filter("join"), words, &blank).as.string->bytes;
}

static struct jinja_value filter_urlize(struct run *run, struct jinja_value input, const struct call *call) {
  struct link_style style = {.run = run, .trim = -1};
  bool trim = jj_given(call, 0) && call->items[0].kind != JINJA_NONE, nofollow = jj_arg_true(run, call, 1, false);
  if (trim) style.trim = jj_arg_int(run, call, 0, -1);
  if (jj_given(call, 2) && call->items[2].kind != JINJA_NONE) style.target = jj_arg_string(run, call, 2)->bytes;
  style.rel = rel_words(run, call, nofollow);
  if (jj_given(call, 4) && call->items[4].kind != JINJA_NONE) style.schemes = jj_iterate(run, call->items[4]);
  const struct jinja_string *text = jj_escape(run, input).as.string;
  struct buffer *before = jj_capture_begin(run);
  for (size_t at = 0; at < text->length;) {
    size_t blank = jj_scan_space(text->bytes + at, text->length - at);
    jj_write(run, text->bytes + at, blank);
    at += blank;
    size_t end = at;
    while (end < text->length && jj_scan_space(text->bytes + end, text->length - end) == 0) end++;
    if (end > at) write_word(&style, text->bytes + at, end - at);
    at = end;
  }
  struct jinja_value result = jj_capture_end(run, before);
  result.safe = run->autoescape;
  return result;
}

const struct filter jj_filters_urlize[] = {
    {"urlize", filter_urlize, {{"trim_url_limit", "nofollow", "target", "rel", "extra_schemes"}, 0, false}},
    {.name = NULL},
};
