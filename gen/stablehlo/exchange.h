/* Exchange: what the devices that run a module together give each other. Each device is a replica of the module, and a
 * collective is over all of them.
 *
 * A tensor may be divided among the devices: flat, in equal parts, the last one filled up with zeros. */
#ifndef ACCEL_STABLEHLO_EXCHANGE_H
#define ACCEL_STABLEHLO_EXCHANGE_H

#include "gen/stablehlo/stablehlo.h"

/* Each of the tensors, which are of one type, becomes the sum of those of all devices, in one collective. One device
 * has them already. */
void hlo_all_reduce(struct stablehlo *hlo, int devices, struct hlo *tensors, int count);

/* What the first device has of x, a tensor of floats, on all devices. */
struct hlo hlo_of_first_device(struct stablehlo *hlo, int devices, struct hlo x);

/* The shape of a device's part of a tensor of this shape. */
struct shape hlo_part_shape(struct shape shape, int devices);

/* This device's part of what all devices have. */
struct hlo hlo_own_part(struct stablehlo *hlo, int devices, struct hlo x);

/* Each of the tensors of floats becomes this device's part of their sum over all devices. Several that come to
 * `bucket` bytes together are one collective. */
void hlo_reduce_to_parts(struct stablehlo *hlo, int devices, int64_t bucket, struct hlo *tensors, int count);

/* Each of the parts, which are of one type, becomes the whole tensor, whose shape is shapes[]; by such collectives. */
void hlo_gather_parts(struct stablehlo *hlo, int devices, int64_t bucket, struct hlo *parts, const struct shape *shapes,
                      int count);

#endif
