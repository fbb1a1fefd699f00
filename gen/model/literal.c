/* String literals. */
#include <stdlib.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/model/evaluate.h"

/* One character after a backslash; moves *text after it. */
static char unescape(const char **text) {
  static const char letters[] = "abfnrtv", characters[] = "\a\b\f\n\r\t\v";
  char letter = *(*text)++;
  const char *found = strchr(letters, letter);
  if (letter == 'x') {
    char *end;
    char value = (char)strtoul(*text, &end, 16);
    *text = end;
    return value;
  }
  if (letter >= '0' && letter <= '7') {
    int value = letter - '0';
    for (int i = 0; i < 2 && **text >= '0' && **text <= '7'; i++) value = value * 8 + (*(*text)++ - '0');
    return (char)value;
  }
  return found != NULL && letter != '\0' ? characters[found - letters] : letter;
}

const char *string_value(struct arena *arena, const char *spelling) {
  struct text text = text_in(arena);
  for (const char *at = spelling + 1; *at != '\0' && *at != '"';) {
    char character = *at++;
    if (character == '\\' && *at != '\0') character = unescape(&at);
    text_add(&text, &character, 1);
  }
  return text_string(&text);
}
