/* Functions of one number that are the same text on every device. The header of a device that includes this has
 * accel_exp, and says in ACCEL_FUNCTION what a function begins with. */
#ifndef ACCEL_FUNCTIONS_H
#define ACCEL_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

/* x clamped to [low, high]; a NaN stays one. */
ACCEL_FUNCTION float accel_clamp(float x, float low, float high) {
  const float y = x < low ? low : x;
  return y > high ? high : y;
}

/* 1 / (1 + e^-x). Within 3 ulp. */
ACCEL_FUNCTION float accel_sigmoid(float x) {
  return 1.0f / (1.0f + accel_exp(-x));
}

/* (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2: what x is multiplied by in the tanh form of gelu. Within 1.8e-7. */
ACCEL_FUNCTION float accel_gelu_gate(float x) {
  return accel_sigmoid(x * (1.59576912f + 0.0713548163f * x * x));
}

/* The derivative of x times that. Within 2.1e-6 for |x| below 1e12. */
ACCEL_FUNCTION float accel_gelu_slope(float x) {
  const float gate = accel_gelu_gate(x);
  return gate * (1.0f + x * (1.0f - gate) * (1.59576912f + 0.214064449f * x * x));
}

/* The loss of a row of logits: `top` is the largest, `rest` ln of the sum of e^(logit - top), `below` the sum of top -
 * logit, `picked` the target's. Of smooth labels, where `even` is not 0, the target's is even + certain and each other
 * one `even`. To that comes z times the square of top + rest. */
ACCEL_FUNCTION float accel_row_loss(float top, float rest, float below, float picked, float certain, float even,
                                    float z) {
  const float l = top + rest;
  const float loss = even > 0.0f ? certain * (top - picked) + even * below + rest : (top - picked) + rest;
  return z > 0.0f ? loss + z * l * l : loss;
}

/* The cell of a unit of an LSTM, which was `before`, and its state *y. open: what opens the gates, input, forget, cell
 * and output, `stride` from each other, which become how far they are open. */
ACCEL_FUNCTION float accel_lstm_cell(float *open, size_t stride, float before, float *y) {
  const float in = accel_sigmoid(open[0]), keep = accel_sigmoid(open[stride]);
  const float fresh = accel_tanh(open[2 * stride]), out = accel_sigmoid(open[3 * stride]);
  const float cell = keep * before + in * fresh;
  open[0] = in;
  open[stride] = keep;
  open[2 * stride] = fresh;
  open[3 * stride] = out;
  *y = out * accel_tanh(cell);
  return cell;
}

/* The gradients of the gates of a unit of an LSTM, input, forget, cell and output, `stride` from each other as they are
 * in `open`: from those of its state and of its cell, which was `before` and is `cell`. Gives that of the former. */
ACCEL_FUNCTION float accel_lstm_slopes(float *to, const float *open, size_t stride, float dstate, float dcell,
                                       float cell, float before) {
  const float in = open[0], keep = open[stride], fresh = open[2 * stride], out = open[3 * stride];
  const float squashed = accel_tanh(cell), slope = dcell + dstate * out * (1.0f - squashed * squashed);
  to[0] = slope * fresh * in * (1.0f - in);
  to[stride] = slope * before * keep * (1.0f - keep);
  to[2 * stride] = slope * in * (1.0f - fresh * fresh);
  to[3 * stride] = dstate * squashed * out * (1.0f - out);
  return slope * keep;
}

/* Of a row of logits whose classes ranks have parts of: the highest of their ln sum e^logit, ln of the sum of e to
 * these less that, and the sum of what each gives of the target's. */
struct accel_joined {
  float highest, rest, picked;
};

/* That of what the ranks give in parts and linear, each `step` after the one before. */
ACCEL_FUNCTION struct accel_joined accel_join_parts(size_t ranks, size_t step, const float *parts,
                                                    const float *linear) {
  float highest = parts[0], sum = 0.0f, picked = 0.0f;
  for (size_t n = 1; n < ranks; n++) highest = fmaxf(highest, parts[step * n]);
  for (size_t n = 0; n < ranks; n++) {
    sum += accel_exp(parts[step * n] - highest);
    picked += linear[step * n];
  }
  const struct accel_joined joined = {highest, logf(sum), picked};
  return joined;
}

/* Four random words: Philox-4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011) under this key, at counter (block, site). */
ACCEL_FUNCTION void accel_philox(uint32_t words[4], uint64_t key, uint64_t block, uint32_t site) {
  uint32_t w0 = (uint32_t)block, w1 = (uint32_t)(block >> 32), w2 = site, w3 = 0;
  uint32_t low = (uint32_t)key, high = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; round++) {
    const uint64_t a = (uint64_t)0xD2511F53u * w0, b = (uint64_t)0xCD9E8D57u * w2;
    w0 = (uint32_t)(b >> 32) ^ w1 ^ low;
    w1 = (uint32_t)b;
    w2 = (uint32_t)(a >> 32) ^ w3 ^ high;
    w3 = (uint32_t)a;
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
  words[0] = w0;
  words[1] = w1;
  words[2] = w2;
  words[3] = w3;
}

#endif
