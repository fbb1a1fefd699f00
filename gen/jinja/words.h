/* The words that the engine itself knows as attribute and method names. Each has a number, so that a template's
 * `loop.index` or `name.upper()` is a table look-up and not a comparison of strings. */
#ifndef ACCEL_JINJA_WORDS_H
#define ACCEL_JINJA_WORDS_H

/* The formatter would move each of these lines further to the right. */
/* clang-format off */
#define JJ_WORDS(X) \
  X(index) X(index0) X(revindex) X(revindex0) X(first) X(last) X(length) X(cycle) X(depth) X(depth0) X(previtem) \
  X(nextitem) X(changed) X(current) X(next) X(reset) X(super) X(self) X(caller) X(varargs) X(kwargs) X(name) \
  X(arguments) X(catch_kwargs) X(catch_varargs) X(grouper) X(list) X(loop) X(upper) X(lower) X(capitalize) \
  X(title) X(swapcase) X(casefold) X(strip) X(lstrip) X(rstrip) X(split) X(rsplit) X(splitlines) X(join) \
  X(replace) X(startswith) X(endswith) X(find) X(rfind) X(rindex) X(count) X(center) X(ljust) X(rjust) X(zfill) \
  X(format) X(isdigit) X(isdecimal) X(isnumeric) X(isalpha) X(isalnum) X(isspace) X(isupper) X(islower) \
  X(istitle) X(isidentifier) X(isascii) X(partition) X(rpartition) X(removeprefix) X(removesuffix) X(expandtabs) \
  X(items) X(keys) X(values) X(get) X(pop) X(update) X(setdefault) X(copy) X(clear) X(append) X(extend) \
  X(insert) X(remove) X(reverse) X(sort) X(popitem) X(is_integer) X(bit_length) X(striptags) X(unescape)
/* clang-format on */

enum jj_word {
  W_none,
#define X(word) W_##word,
  JJ_WORDS(X)
#undef X
      W_COUNT
};

#endif
