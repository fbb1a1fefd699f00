/* Any bytes as an image: what is decoded is turned and resized within memory that is there. */
#include <stdlib.h>

#include "gen/dataset/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  enum { SIDE = 9, LARGE = 1 << 20 };
  static uint8_t out[3 * SIDE * SIDE];
  struct problem problem = {0};
  struct picture picture;
  if (!picture_decode("fuzz.png", bytes, size, &picture, &problem)) {
    if (problem.what[0] == '\0') __builtin_trap();
    return 0;
  }
  for (int i = 0; i < 4 && picture.width * picture.height < LARGE; i++) {
    const struct frame frame = {.channels = i < 2 ? 3 : 1, .height = SIDE, .width = SIDE - i, .stretches = i % 2 != 0};
    if (!frame_turn(&frame, &picture) || !frame_fit(&frame, &picture, out)) __builtin_trap();
  }
  free(picture.pixels);
  return 0;
}
