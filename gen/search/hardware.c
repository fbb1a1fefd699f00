#include "gen/search/hardware.h"

#include <string.h>

/* Known products. */
static const struct product {
  const char *name;
  double bits16, tf32, float32; /* FLOP/s, dense */
  double efficiency;            /* measured of 16 bits over `bits16` */
  double memory_bandwidth, link;
} products[] = {
    /* "NVIDIA A100 Tensor Core GPU" data sheet, 2022: 312, 156 and 19.5 TFLOPS, 2039 GB/s, NVLink of 600 GB/s in both
     * directions together. Efficiency: 267.9 TFLOPS, the largest that mamf-finder.py has found, in "Machine Learning
     * Engineering", compute/accelerator, by S. Bekman. */
    {"a100-sxm-80gb", 312e12, 156e12, 19.5e12, 267.9 / 312, 2039e9, 300e9},
    /* NVIDIA H100 SXM5, as glennklockwood.com/garden/processors/h100 lists NVIDIA's figures: 989.4, 494.7 and 66.9
     * TFLOPS without sparsity, 3.35 TB/s, NVLink of 900 GB/s in both directions together. Efficiency: 792.1 TFLOPS, as
     * above. */
    {"h100-sxm-80gb", 989.4e12, 494.7e12, 66.9e12, 792.1 / 989.4, 3350e9, 450e9},
};

static const struct product *product_of(const char *name) {
  for (size_t i = 0; name != NULL && i < sizeof products / sizeof *products; i++)
    if (strcmp(products[i].name, name) == 0) return &products[i];
  return NULL;
}

double product_peak(const char *name, bool bits16, bool tf32) {
  const struct product *product = product_of(name);
  if (product == NULL) return 0;
  return bits16 ? product->bits16 : tf32 ? product->tf32 : product->float32;
}

static double either(double given, double known) {
  return given > 0 ? given : known;
}

static double peak_of(const struct job *job) {
  const bool bits16 = job->precision.mixed != PRECISION_NO || job->precision.param != PRECISION_NO;
  return either(job->devices.peak_flops, product_peak(job->devices.hardware, bits16, job->precision.tf32));
}

static void need(const struct job *job, bool known, const char *key, const char *what, struct diagnostics *diags) {
  if (known) return;
  diag_error(diags, job_where(job, "devices"), "'parallelism: auto' needs %s: '%s' is not given", what, key);
}

bool hardware_of(const struct job *job, struct hardware *hardware, struct diagnostics *diags) {
  int before = diags->errors;
  const struct product *product = product_of(job->devices.hardware);
  *hardware = (struct hardware){
      .peak = peak_of(job),
      .efficiency = either(job->devices.efficiency, product != NULL ? product->efficiency : 1),
      .memory_bandwidth = either(job->devices.memory_bandwidth, product != NULL ? product->memory_bandwidth : 0),
      .within = {1e-6 * job->devices.link.latency,
                 either(1e6 * job->devices.link.bandwidth, product != NULL ? product->link : 0)},
      .between = {1e-6 * job->devices.network.latency, 1e6 * job->devices.network.bandwidth},
      .per_node = job->devices.ranks / job->devices.nodes,
      .ranks = job->devices.ranks,
      .memory = job->devices.memory,
      .name = product != NULL ? product->name : NULL};
  need(job, hardware->peak > 0, "devices.peak_flops", "the speed of matmuls", diags);
  need(job, hardware->memory_bandwidth > 0, "devices.memory_bandwidth", "the speed of memory", diags);
  need(job, hardware->per_node == 1 || hardware->within.bandwidth > 0, "devices.link",
       "the links between the ranks of a machine", diags);
  need(job, job->devices.nodes == 1 || hardware->between.bandwidth > 0, "devices.network", "the links between machines",
       diags);
  if (diags->errors > before) diag_help(diags, "or name a product that is known, by devices.hardware");
  return diags->errors == before;
}

struct link link_along(const struct hardware *hardware, int64_t ranks, int64_t stride) {
  if (ranks * stride <= hardware->per_node) return hardware->within;
  int64_t together = hardware->per_node / stride; /* of a group on a machine */
  if (together < 1) together = 1;
  struct link link = hardware->between;
  link.bandwidth *= (double)together / (double)hardware->per_node;
  if (together > 1 && hardware->within.bandwidth < link.bandwidth) link.bandwidth = hardware->within.bandwidth;
  return link;
}
