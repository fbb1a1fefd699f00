/* Exchange: what the devices that run a module together give each other. Each device is a replica of the module, and a
 * collective is over all of them. */
#ifndef ACCEL_STABLEHLO_EXCHANGE_H
#define ACCEL_STABLEHLO_EXCHANGE_H

#include "gen/stablehlo/stablehlo.h"

/* Each of the tensors, which are of one type, becomes the sum of those of all devices, in one collective. One device
 * has them already. */
void hlo_all_reduce(struct stablehlo *hlo, int devices, struct hlo *tensors, int count);

/* What the first device has of x, a tensor of floats, on all devices. */
struct hlo hlo_of_first_device(struct stablehlo *hlo, int devices, struct hlo x);

#endif
