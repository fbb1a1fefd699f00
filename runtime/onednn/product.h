/* How oneDNN sees a product, for the files that make its primitives. */
#ifndef RUNTIME_ONEDNN_PRODUCT_H
#define RUNTIME_ONEDNN_PRODUCT_H

#include "include/accel/product.h"
#include "runtime/onednn/onednn.h"

/* By enum accel_element. */
extern const dnnl_data_type_t rt_product_types[];

/* a, b and y: the batch, then rows and columns. */
dnnl_status_t rt_describe_product(const struct accel_product *p, rt_description matrices[3]);

/* The best way that oneDNN has for the product of these matrices; NULL when that is only its portable one. */
dnnl_primitive_desc_t rt_choose_product(const struct accel_product *p, const rt_description matrices[3],
                                        dnnl_scratchpad_mode_t scratchpad);

#endif
