#include "gen/program/processor.h"

#include <string.h>

#if defined __x86_64__
#define AT_HAND "x86_64"
#define WIDE "-mprefer-vector-width=512"
#elif defined __aarch64__
#define AT_HAND "aarch64"
#define WIDE ""
#else
#define AT_HAND "unknown"
#define WIDE ""
#endif

static const char x86[] = "x86_64-linux-gnu", arm[] = "aarch64-linux-gnu", full[] = "-mprefer-vector-width=512";

/* In the order of enum processor_arch. */
static const struct processor processors[] = {
    {"native", "the machine that compiles", "-march=native", WIDE, "", 0, false},
    {"x86-64-v3", "AVX2", "-march=x86-64-v3", "", x86, 8, false},
    {"avx512", "AVX-512", "-march=x86-64-v4", full, x86, 16, false},
    {"avx512-bf16", "AVX512-BF16", "-march=cooperlake", full, x86, 16, true},
    {"amx", "AMX", "-march=sapphirerapids", full, x86, 16, true},
    {"neon", "NEON", "-march=armv8-a", "", arm, 4, false},
    {"sve", "SVE", "-march=armv8.2-a+sve", "", arm, 4, false},
};

const struct processor *processor_of(const struct job *job) {
  return &processors[job->devices.arch];
}

const struct processor *processor_named(const char *name) {
  for (size_t i = 0; i < sizeof processors / sizeof *processors; i++)
    if (strcmp(processors[i].name, name) == 0) return &processors[i];
  return NULL;
}

bool processor_is_foreign(const struct processor *processor) {
  return processor->triple[0] != '\0' && strncmp(processor->triple, AT_HAND, strlen(AT_HAND)) != 0;
}

const char *processor_cflags(struct arena *arena, const struct processor *processor) {
  bool tuned = processor->tuning[0] != '\0';
  return arena_printf(arena, "-std=c17 -O3 %s%s%s", processor->flags, tuned ? " " : "", processor->tuning);
}
