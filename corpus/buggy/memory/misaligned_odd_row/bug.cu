extern "C" __global__ void copy_rows(const float* x, float* y, int cols) {
  const float* in = x + blockIdx.x * cols;
  for (int c = threadIdx.x * 4; c + 3 < cols; c += 128) {
    float4 v = *reinterpret_cast<const float4*>(in + c);  // BUG: misaligned
    float* out = y + blockIdx.x * cols + c;
    out[0] = v.x;
    out[1] = v.y;
    out[2] = v.z;
    out[3] = v.w;
  }
}
