#include "runtime/tracking/png.h"

#include "runtime/tracking/crc.h"

static void add_big(struct bytes *to, uint32_t number) {
  const uint8_t bytes[4] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number};
  rt_bytes_add(to, bytes, sizeof bytes);
}

/* A chunk with this content, which is freed. */
static void add_chunk(struct bytes *to, const char *type, struct bytes *content) {
  uint32_t crc = rt_crc(CRC_OF_ZLIB, 0, type, 4);
  add_big(to, (uint32_t)content->count);
  rt_bytes_add(to, type, 4);
  rt_bytes_add(to, content->data, content->count);
  add_big(to, rt_crc(CRC_OF_ZLIB, crc, content->data, content->count));
  to->failed |= content->failed;
  rt_bytes_free(content);
}

/* RFC 1950. */
static uint32_t adler(const struct bytes *bytes) {
  uint32_t a = 1, b = 0;
  for (size_t i = 0; i < bytes->count; i++) {
    a = (a + bytes->data[i]) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

/* A zlib stream of stored blocks (RFC 1951, 3.2.4). */
static void add_stored(struct bytes *to, const struct bytes *bytes) {
  enum { MOST = 65535 };
  rt_bytes_add(to, "\x78\x01", 2);
  for (size_t at = 0; at < bytes->count;) {
    const size_t count = bytes->count - at < MOST ? bytes->count - at : MOST;
    const uint8_t last = at + count == bytes->count;
    rt_bytes_add(to, &last, 1);
    rt_bytes_u16(to, (uint16_t)count);
    rt_bytes_u16(to, (uint16_t)~count);
    rt_bytes_add(to, bytes->data + at, count);
    at += count;
  }
  add_big(to, adler(bytes));
}

void rt_png_add(struct bytes *to, const struct picture *picture) {
  const size_t row = (size_t)picture->width * (size_t)picture->channels;
  const uint8_t type = picture->channels == 1 ? 0 : picture->channels == 3 ? 2 : 6;
  const uint8_t rest[5] = {8, type, 0, 0, 0};
  struct bytes header = {0}, rows = {0}, data = {0}, end = {0};
  rt_bytes_add(to, "\x89PNG\r\n\x1a\n", 8);
  add_big(&header, (uint32_t)picture->width);
  add_big(&header, (uint32_t)picture->height);
  rt_bytes_add(&header, rest, sizeof rest);
  add_chunk(to, "IHDR", &header);
  for (int i = 0; i < picture->height; i++) {
    rt_bytes_add(&rows, "", 1); /* the filter: none */
    rt_bytes_add(&rows, picture->pixels + (size_t)i * row, row);
  }
  add_stored(&data, &rows);
  data.failed |= rows.failed;
  rt_bytes_free(&rows);
  add_chunk(to, "IDAT", &data);
  add_chunk(to, "IEND", &end);
}
