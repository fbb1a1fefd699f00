#define PCRE2_CODE_UNIT_WIDTH 8
#include "gen/tokenizer/normalize.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

bool normalizers_add(struct normalizers *normalizers, struct normalizer step) {
  if (normalizers->count == NORMALIZERS_MOST) {
    pcre2_code_free(step.code);
    charsmap_free(&step.charsmap);
    return false;
  }
  normalizers->steps[normalizers->count++] = step;
  return true;
}

void normalizers_free(struct normalizers *normalizers) {
  for (int i = 0; i < normalizers->count; i++) {
    pcre2_code_free(normalizers->steps[i].code);
    charsmap_free(&normalizers->steps[i].charsmap);
  }
  normalizers->count = 0;
}

/* ---- Characters ---- */

bool is_white_space(int32_t c) {
  utf8proc_category_t category = utf8proc_category(c);
  return (c >= '\t' && c <= '\r') || c == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
         category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

/* The library's ranges (normalizers/bert.rs), in which 2B820 to 2B91F are missing. */
static bool is_ideograph(int32_t c) {
  static const int32_t ranges[][2] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},  {0x20000, 0x2a6df},
                                      {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
    if (c >= ranges[i][0] && c <= ranges[i][1]) return true;
  return false;
}

/* One to one but for U+0130, the only character that becomes two (SpecialCasing.txt). */
static void put_lower(struct bytes *form, int32_t c) {
  if (c == 0x130) {
    bytes_put(form, 'i');
    c = 0x307;
  }
  bytes_put(form, utf8proc_tolower(c));
}

static void put_clean(struct bytes *form, int32_t c) {
  bool is_white = is_white_space(c) && (c == '\t' || c == '\n' || c == '\r' || c > 0x85);
  utf8proc_category_t category = utf8proc_category(c);
  bool is_control = category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
                    category == UTF8PROC_CATEGORY_CO || c == 0xfffd;
  if (is_white)
    bytes_put(form, ' ');
  else if (!is_control)
    bytes_put(form, c);
}

static void put_separated(struct bytes *form, int32_t c) {
  bool ideograph = is_ideograph(c);
  if (ideograph) bytes_put(form, ' ');
  bytes_put(form, c);
  if (ideograph) bytes_put(form, ' ');
}

static bool is_mark(int32_t c, bool all) {
  utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_MN ||
         (all && (category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME));
}

static void put(const struct normalizer *step, int32_t c, struct bytes *form) {
  switch (step->kind) {
  case NORMALIZE_LOWERCASE:
    put_lower(form, c);
    break;
  case NORMALIZE_CLEAN:
    put_clean(form, c);
    break;
  case NORMALIZE_CHINESE:
    put_separated(form, c);
    break;
  default:
    if (!is_mark(c, step->marks_all)) bytes_put(form, c);
  }
}

static void put_each(const struct normalizer *step, const char *text, size_t size, struct bytes *form) {
  for (size_t at = 0, length; at < size; at += length) put(step, character_at(text + at, size - at, &length), form);
}

/* ---- Texts ---- */

static void put_form(int options, const char *text, size_t size, struct bytes *form) {
  utf8proc_uint8_t *composed = NULL;
  utf8proc_ssize_t length =
      utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size, &composed, (utf8proc_option_t)options);
  if (length >= 0)
    bytes_add(form, (const char *)composed, (size_t)length);
  else
    form->failed = true;
  free(composed);
}

static void put_stripped(const struct normalizer *step, const char *text, size_t size, struct bytes *form) {
  size_t from = 0, end = 0, length;
  while (step->left && from < size && is_white_space(character_at(text + from, size - from, &length))) from += length;
  for (size_t at = from; at < size; at += length)
    if (!is_white_space(character_at(text + at, size - at, &length))) end = at + length;
  if (!step->right) end = size;
  if (end > from) bytes_add(form, text + from, end - from);
}

static void put_replaced(const struct normalizer *step, const char *text, size_t size, struct bytes *form) {
  pcre2_match_data *match = pcre2_match_data_create(1, NULL);
  size_t at = 0;
  form->failed |= match == NULL;
  while (match != NULL && at < size) {
    if (pcre2_match(step->code, (PCRE2_SPTR)text, size, at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, match, NULL) < 0)
      break; /* none is left, or it would take too long to say */
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(match);
    bytes_add(form, text + at, ends[0] - at);
    bytes_add(form, step->text, strlen(step->text));
    at = ends[1];
  }
  bytes_add(form, text + at, size - at);
  pcre2_match_data_free(match);
}

static void apply(const struct normalizer *step, const char *text, size_t size, struct bytes *form) {
  switch (step->kind) {
  case NORMALIZE_FORM:
    put_form(step->form, text, size, form);
    break;
  case NORMALIZE_STRIP:
    put_stripped(step, text, size, form);
    break;
  case NORMALIZE_REPLACE:
    put_replaced(step, text, size, form);
    break;
  case NORMALIZE_CHARSMAP:
    charsmap_apply(&step->charsmap, text, size, form);
    break;
  case NORMALIZE_PREPEND:
    if (size > 0) bytes_add(form, step->text, strlen(step->text));
    bytes_add(form, text, size);
    break;
  default:
    put_each(step, text, size, form);
  }
}

bool normalize(const struct normalizers *normalizers, const char *text, size_t size, struct bytes *form) {
  struct bytes now = {0};
  bool good = true;
  for (int i = 0; good && i < normalizers->count; i++) {
    struct bytes next = {0};
    apply(&normalizers->steps[i], text, size, &next);
    bytes_free(&now);
    now = next;
    text = now.text != NULL ? now.text : "";
    size = now.size;
    good = !now.failed;
  }
  if (!good) bytes_free(&now);
  *form = now;
  return good;
}
