#include "gen/pictures/pictures.h"

bool picture_decode(const char *path, const uint8_t *bytes, size_t size, struct picture *picture,
                    struct problem *problem) {
  (void)bytes;
  (void)size;
  (void)picture;
  rt_problem(problem, "%s: this accel-gen was built without libpng and libjpeg", path);
  return rt_help(problem, "install libpng-dev and libjpeg-dev and build again: sh tools/configure.sh build/config && "
                          "ninja");
}
