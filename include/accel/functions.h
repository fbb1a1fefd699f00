/* Functions of one number that are the same text on every device. The header of a device that includes this has
 * accel_exp, and says in ACCEL_FUNCTION what a function begins with. */
#ifndef ACCEL_FUNCTIONS_H
#define ACCEL_FUNCTIONS_H

/* x held within [low, high]; a NaN stays one. */
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

#endif
