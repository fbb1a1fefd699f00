/* Mutation by words and signs for targets of libFuzzer whose inputs are C: random bytes are seldom C. */
#ifndef TESTS_MODEL_WORD_MUTATION_H
#define TESTS_MODEL_WORD_MUTATION_H

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(unsigned char *data, size_t size, size_t limit);

/* The bounds of the word or sign at or after `at`. */
static size_t word_end(const unsigned char *text, size_t size, size_t at) {
  if (at >= size) return size;
  bool letter = isalnum(text[at]) || text[at] == '_';
  at++;
  while (letter && at < size && (isalnum(text[at]) || text[at] == '_')) at++;
  return at;
}

static size_t word_start(const unsigned char *text, size_t size, size_t at) {
  while (at > 0 && at < size && (isalnum(text[at]) || text[at] == '_') &&
         (isalnum(text[at - 1]) || text[at - 1] == '_'))
    at--;
  return at;
}

/* Replaces `removed` bytes at `at` by a word. */
static size_t splice(unsigned char *data, size_t size, size_t limit, size_t at, size_t removed, const void *word,
                     size_t length) {
  if (size - removed + length > limit) return size;
  memmove(data + at + length, data + at + removed, size - at - removed);
  memcpy(data + at, word, length);
  return size - removed + length;
}

/* Replaces, inserts and removes a few words of the text, by others of its own or of words[count]; now and then leaves
 * it to libFuzzer. Gives the new size, at most limit. */
static size_t mutate_words(unsigned char *data, size_t size, size_t limit, unsigned seed, const char *const *words,
                           size_t count) {
  srand(seed);
  if (size < 8 || rand() % 8 == 0) return LLVMFuzzerMutate(data, size, limit);
  for (int left = 1 + rand() % 3; left > 0 && size > 8; left--) {
    size_t start = word_start(data, size, (size_t)rand() % size), end = word_end(data, size, start);
    size_t other = word_start(data, size, (size_t)rand() % size), other_end = word_end(data, size, other);
    unsigned char copy[64];
    size_t length = other_end - other < sizeof copy ? other_end - other : sizeof copy;
    memcpy(copy, data + other, length);
    const char *word = words[(size_t)rand() % count];
    switch (rand() % 4) {
    case 0:
      size = splice(data, size, limit, start, end - start, copy, length);
      break;
    case 1:
      size = splice(data, size, limit, start, end - start, word, strlen(word));
      break;
    case 2:
      size = splice(data, size, limit, start, 0, word, strlen(word));
      break;
    default:
      size = splice(data, size, limit, start, end - start, "", 0);
      break;
    }
  }
  return size;
}

#endif
