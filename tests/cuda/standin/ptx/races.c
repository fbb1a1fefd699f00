#include "tests/cuda/standin/ptx/races.h"

#include "tests/cuda/standin/ptx/program.h"

static bool is_of_warp(const struct who *who, unsigned other) {
  return other < SEVERAL_OF_WARP ? (other - 1) / LANES == who->warp : other == SEVERAL_OF_WARP + who->warp;
}

static bool is_ordered(const struct who *who, uint32_t time, uint16_t warp_time, unsigned other) {
  other &= ~(unsigned)BY_ATOMICS;
  if (time < who->oldest || other == 0) return true;
  if (time < who->begin || other == SEVERAL_BLOCKS) return false;
  if (time < who->now || other == who->own) return true;
  return is_of_warp(who, other) && warp_time != who->warp_time;
}

bool touch_follows_write(const struct touch *t, const struct who *who, enum access access) {
  if (access == UPDATES && (t->writer & BY_ATOMICS) != 0) return true;
  return is_ordered(who, t->write, t->write_warp, t->writer);
}

bool touch_follows_reads(const struct touch *t, const struct who *who, enum access access) {
  return access == READS || is_ordered(who, t->read, t->read_warp, t->reader);
}

static uint16_t reader_of(const struct touch *t, const struct who *who) {
  if (is_ordered(who, t->read, t->read_warp, t->reader)) return who->own;
  if (t->read < who->begin || t->reader == SEVERAL_BLOCKS) return SEVERAL_BLOCKS;
  return (uint16_t)(is_of_warp(who, t->reader) ? SEVERAL_OF_WARP + who->warp : SEVERAL);
}

static uint16_t updater_of(const struct touch *t, const struct who *who) {
  if (is_ordered(who, t->write, t->write_warp, t->writer)) return who->own | BY_ATOMICS;
  const bool is_of_block = t->write >= who->begin && t->writer != (SEVERAL_BLOCKS | BY_ATOMICS);
  return (uint16_t)((is_of_block ? SEVERAL : SEVERAL_BLOCKS) | BY_ATOMICS);
}

void touch_note(struct touch *t, const struct who *who, enum access access) {
  if (access == READS) {
    t->reader = reader_of(t, who);
    t->read = who->now;
    t->read_warp = who->warp_time;
    return;
  }
  t->writer = access == UPDATES ? updater_of(t, who) : who->own;
  t->write = who->now;
  t->write_warp = who->warp_time;
  t->reader = 0;
}
