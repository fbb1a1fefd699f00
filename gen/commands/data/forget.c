#include "gen/commands/data/forget.h"

size_t forget_read(const struct mapping *mapping, size_t forgotten, size_t done) {
  enum { CHUNK = 16 << 20 };
  if (done < forgotten + CHUNK) return forgotten;
  rt_map_forget(mapping->bytes + forgotten, done - forgotten);
  return done;
}
