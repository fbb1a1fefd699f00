/* --set devices.per_node=2 --set parallelism.pp=2 --set accumulation.num_steps=4 --set
 * accumulation.sync_with_dataloader=false */
#include "four_layers.h"
