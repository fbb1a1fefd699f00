/* Documents of a shard of WebDataset: the .txt of each sample is one, or its .json is a record. */
#include <stdio.h>
#include <string.h>

#include "gen/tokenizer/documents_parts.h"
#include "gen/unpack/shard.h"

static const char *const texts[] = {"txt", NULL}, *const records[] = {"json", NULL};

static const char *const *wanted_by(const struct documents *of) {
  return of->selector.kind == TEXT_WHOLE ? texts : records;
}

bool documents_begin_samples(struct documents *of, const char *bytes, size_t size, struct problem *problem) {
  if (of->selector.kind == TEXT_COLUMN || of->selector.is_table) {
    rt_problem(problem, "%s: a tar archive, whose samples are no rows of a table", of->path);
    return rt_help(problem,
                   "--text-field NAME takes a field of each sample's .json; without it, the .txt is a document");
  }
  of->shard = shard_new(of->path, bytes, size, wanted_by(of), problem);
  return of->shard != NULL;
}

/* The sample's file that has the text or the record. */
static bool take_sample(struct documents *of, const struct shard_sample *sample, struct problem *problem) {
  const char *ending = wanted_by(of)[0];
  const struct shard_file *file = shard_file_of(sample, ending);
  const char *content = file != NULL ? sample->content + file->from : "";
  size_t size = file != NULL ? file->size : 0, at;
  snprintf(of->member, sizeof of->member, "%.400s.%s", sample->key, ending);
  if (file == NULL)
    return documents_bad(of, 0, 0, "the sample has no such file",
                         "give each sample one, or leave out the others with --on-bad-record skip", problem);
  if (of->selector.kind != TEXT_WHOLE) {
    while (size > 0 && strchr(" \t\r\n", content[size - 1]) != NULL && content[size - 1] != '\0') size--;
    return documents_take_record(of, content, size, problem);
  }
  of->text = content;
  of->length = size;
  return is_utf8(content, size, &at) ||
         documents_bad(of, 0, 0, "the text is not UTF-8", "convert it to UTF-8", problem);
}

enum document documents_next_sample(struct documents *of, struct problem *problem) {
  const struct shard_sample *sample;
  enum shard_found found = shard_next(of->shard, &sample, problem);
  of->is_broken |= found == SHARD_BAD;
  if (found == SHARD_NONE) return DOCUMENT_NONE;
  return found == SHARD_NEXT && take_sample(of, sample, problem) ? DOCUMENT_NEXT : DOCUMENT_BAD;
}
