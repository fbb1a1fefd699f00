/* What a job may ask of the device that it names. */
#ifndef ACCEL_SPEC_DEVICE_H
#define ACCEL_SPEC_DEVICE_H

#include "gen/spec/node.h"

/* Checks that a resolved job sets nothing that programs for its devices.kind do not do yet; what they do not is one
 * error each, with the location of the key; and for nothing that other devices alone have. */
void device_check(const struct spec_node *job, struct diagnostics *diags);

#endif
