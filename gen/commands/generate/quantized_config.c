#include "gen/commands/generate/quantized_config.h"

#include <stdio.h>
#include <string.h>

#include "gen/base/text.h"

static void add_codes(struct text *text, const struct job *job) {
  static const char *const types[] = {
      [PRECISION_NO] = "float32", [PRECISION_BF16] = "bfloat16", [PRECISION_FP16] = "float16"};
  if (job->model.quantize.load_in_8bit) {
    text_printf(text, "\"load_in_8bit\": true, \"llm_int8_threshold\": %.9g", job->model.quantize.threshold);
    return;
  }
  text_printf(text, "\"load_in_4bit\": true, \"bnb_4bit_quant_type\": \"%s\", \"bnb_4bit_use_double_quant\": %s, ",
              job_word(job, "model.quantize.bnb_4bit_quant_type"), job->model.quantize.double_quant ? "true" : "false");
  text_printf(text, "\"bnb_4bit_compute_dtype\": \"%s\", \"bnb_4bit_quant_storage\": \"uint8\"",
              types[job->model.quantize.compute]);
}

const char *quantized_config(const struct program *program, const char *config) {
  struct text text = text_in(program->arena);
  text_printf(&text, "%.*s,\n\"quantization_config\": {\"quant_method\": \"bitsandbytes\", ",
              (int)(strrchr(config, '}') - config), config);
  add_codes(&text, program->job);
  text_puts(&text, ", \"llm_int8_skip_modules\": [");
  for (int i = 0; i < program->unquantized.count; i++)
    text_printf(&text, "%s\"%s\"", i > 0 ? ", " : "", program->unquantized.items[i]);
  text_puts(&text, "]}}");
  return text_string(&text);
}
