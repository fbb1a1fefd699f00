/* urlize: addresses in a text become links. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "gen/jinja/scan.h"
#include "gen/jinja/support.h"

struct link_style {
  struct run *run;
  bool trim;
  int64_t limit; /* characters of the shown address; below 0: so many are left out at its end */
  const char *rel, *target;
  const struct jinja_list *schemes;
  pcre2_compile_context *compile;
  pcre2_match_data *match;
  pcre2_code *address, *email;
};

/* What is between blanks: an address, and the brackets and marks around it. */
struct word {
  const char *head, *middle, *tail, *end;
};

/* A host with a scheme or www., a host of a well-known top-level domain, or an IP number; then a port and a path. */
static const char address_pattern[] =
    "^(?:(?:https?://|www\\.)(?:[\\w%-]+\\.)*(?:[a-z]{2,63}|xn--[\\w%]{2,59})"
    "|(?:[\\w%-]{2,63}\\.)+(?:com|net|int|edu|gov|org|info|mil)"
    "|https?://(?:\\d{1,3}(?:\\.\\d{1,3}){3}|\\[(?:[\\da-f]{0,4}:){2}(?:[\\da-f]{0,4}:?){1,6}]))"
    "(?::\\d{1,5})?(?:[/?#]\\S*)?$";
static const char email_pattern[] = "^\\S+@\\w[\\w.-]*\\.\\w+$";
static const char scheme_pattern[] = "^[\\w.+-]{2,}:/{0,2}$";

/* All memory of PCRE2's is the rendering's, so that an error may leave from anywhere. */
static void *take(size_t size, void *pool) {
  return jj_alloc(pool, size);
}

static void leave(void *memory, void *pool) {
  (void)memory, (void)pool;
}

static pcre2_code *compile(const struct link_style *style, const char *pattern) {
  const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_CASELESS | PCRE2_DOLLAR_ENDONLY;
  int error;
  size_t at;
  return pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options, &error, &at, style->compile);
}

/* A text on which the search takes too many steps is no address. */
static bool matches(const struct link_style *style, const pcre2_code *code, const char *bytes, size_t length) {
  return pcre2_match(code, (PCRE2_SPTR)bytes, length, 0, 0, style->match, NULL) >= 0;
}

static bool starts(const char *bytes, size_t length, const char *with) {
  size_t count = strlen(with);
  return length >= count && memcmp(bytes, with, count) == 0;
}

static bool ends(const char *from, const char *to, const char *with) {
  size_t count = strlen(with);
  return (size_t)(to - from) >= count && memcmp(to - count, with, count) == 0;
}

static int count_of(const char *from, const char *to, const char *what) {
  int count = 0;
  for (size_t size = strlen(what); from < to;) {
    bool here = starts(from, (size_t)(to - from), what);
    count += here;
    from += here ? size : 1;
  }
  return count;
}

/* A bracket that the address opens and that ends in the tail belongs to the address, with what is before it. */
static void balance(struct word *word, const char *open, const char *close) {
  int opened = count_of(word->middle, word->tail, open);
  if (opened <= count_of(word->middle, word->tail, close)) return;
  int closing = count_of(word->tail, word->end, close);
  for (int i = 0; i < (opened < closing ? opened : closing); i++) {
    while (!starts(word->tail, (size_t)(word->end - word->tail), close)) word->tail++;
    word->tail += strlen(close);
  }
}

static struct word part_word(const char *bytes, size_t length) {
  struct word word = {bytes, bytes, bytes + length, bytes + length};
  while (word.middle < word.tail) {
    if (starts(word.middle, (size_t)(word.tail - word.middle), "&lt;")) {
      word.middle += 4;
    } else if (strchr("(<", *word.middle) != NULL) {
      word.middle++;
    } else {
      break;
    }
  }
  while (word.tail > word.middle) {
    if (ends(word.middle, word.tail, "&gt;")) {
      word.tail -= 4;
    } else if (strchr(").,>\n", word.tail[-1]) != NULL) {
      word.tail--;
    } else {
      break;
    }
  }
  balance(&word, "(", ")");
  balance(&word, "<", ">");
  balance(&word, "&lt;", "&gt;");
  return word;
}

static void write_text(struct run *run, const char *text) {
  jj_write(run, text, strlen(text));
}

static void write_attribute(struct run *run, const char *name, const char *value) {
  if (value == NULL || value[0] == '\0') return;
  write_text(run, name);
  jj_write_escaped(run, value, strlen(value));
  write_text(run, "\"");
}

static void write_shown(const struct link_style *style, const char *bytes, size_t length) {
  int64_t count = (int64_t)jj_utf8_count(bytes, length), kept = style->limit < 0 ? count + style->limit : style->limit;
  bool cut = style->trim && count > style->limit;
  jj_write(style->run, bytes, cut ? jj_utf8_offset(bytes, length, kept < 0 ? 0 : (size_t)kept) : length);
  if (cut) write_text(style->run, "...");
}

static void write_link(const struct link_style *style, const char *prefix, const char *bytes, size_t length,
                       bool trimmed) {
  struct run *run = style->run;
  write_text(run, "<a href=\"");
  write_text(run, prefix);
  jj_write(run, bytes, length);
  write_text(run, "\"");
  write_attribute(run, " rel=\"", style->rel);
  write_attribute(run, " target=\"", style->target);
  write_text(run, ">");
  if (trimmed) {
    write_shown(style, bytes, length);
  } else {
    jj_write(run, bytes, length);
  }
  write_text(run, "</a>");
}

static void write_mail(const struct link_style *style, const char *bytes, size_t length) {
  write_text(style->run, "<a href=\"mailto:");
  jj_write(style->run, bytes, length);
  write_text(style->run, "\">");
  jj_write(style->run, bytes, length);
  write_text(style->run, "</a>");
}

static bool own_scheme(const struct link_style *style, const char *bytes, size_t length) {
  for (int i = 0; style->schemes != NULL && i < style->schemes->count; i++) {
    const struct jinja_string *scheme = style->schemes->items[i].as.string;
    if (length > scheme->length && starts(bytes, length, scheme->bytes)) return true;
  }
  return false;
}

static bool is_bare_email(const struct link_style *style, const char *bytes, size_t length) {
  bool candidate = memchr(bytes, '@', length) != NULL && memchr(bytes, ':', length) == NULL;
  if (!candidate || bytes[0] == '@' || starts(bytes, length, "www.")) return false;
  return matches(style, style->email, bytes, length);
}

static void write_word(const struct link_style *style, const char *bytes, size_t length) {
  struct word word = part_word(bytes, length);
  size_t count = (size_t)(word.tail - word.middle);
  jj_write(style->run, word.head, (size_t)(word.middle - word.head));
  if (matches(style, style->address, word.middle, count)) {
    bool scheme = starts(word.middle, count, "https://") || starts(word.middle, count, "http://");
    write_link(style, scheme ? "" : "https://", word.middle, count, true);
  } else if (starts(word.middle, count, "mailto:") && matches(style, style->email, word.middle + 7, count - 7)) {
    write_mail(style, word.middle + 7, count - 7);
  } else if (is_bare_email(style, word.middle, count)) {
    write_mail(style, word.middle, count);
  } else if (own_scheme(style, word.middle, count)) {
    write_link(style, "", word.middle, count, false);
  } else {
    jj_write(style->run, word.middle, count);
  }
  jj_write(style->run, word.tail, (size_t)(word.end - word.tail));
}

static const struct jinja_list *own_schemes(const struct link_style *style, struct jinja_value given) {
  struct run *run = style->run;
  const struct jinja_list *schemes = jj_iterate(run, given);
  const pcre2_code *pattern = compile(style, scheme_pattern);
  int wrong = 0;
  while (wrong < schemes->count && schemes->items[wrong].kind == JINJA_STRING &&
         matches(style, pattern, schemes->items[wrong].as.string->bytes, schemes->items[wrong].as.string->length))
    wrong++;
  if (wrong < schemes->count)
    jj_fail(run, "%s is not a valid URI scheme prefix.", jj_repr(run, schemes->items[wrong]).as.string->bytes);
  return schemes;
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

static struct link_style patterns(struct run *run) {
  struct link_style style = {.run = run};
  pcre2_general_context *memory = pcre2_general_context_create(take, leave, run->pool);
  style.compile = pcre2_compile_context_create(memory);
  style.match = pcre2_match_data_create(1, memory);
  style.address = compile(&style, address_pattern);
  style.email = compile(&style, email_pattern);
  return style;
}

static struct jinja_value filter_urlize(struct run *run, struct jinja_value input, const struct call *call) {
  struct link_style style = patterns(run);
  bool nofollow = jj_arg_true(run, call, 1, false);
  style.trim = jj_given(call, 0) && call->items[0].kind != JINJA_NONE;
  if (style.trim) style.limit = jj_arg_int(run, call, 0, 0);
  if (jj_given(call, 2) && call->items[2].kind != JINJA_NONE) style.target = jj_arg_string(run, call, 2)->bytes;
  style.rel = rel_words(run, call, nofollow);
  if (jj_given(call, 4) && call->items[4].kind != JINJA_NONE) style.schemes = own_schemes(&style, call->items[4]);
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
