__global__ void add(float *y, const float *x) {
  const int i = threadIdx.x;
  if (i >= 7) return;
  for (int k = 0; k < i; k++) y[i] += x[k];
  y[i] = y[i] + 1.0f;
}
