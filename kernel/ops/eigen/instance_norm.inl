// The inner loops of instance norms, included in kernels.cpp. The sums of a channel are kept for a block of images in
// arrays of fixed size, so that no memory is taken.

constexpr int kNormImages = 64;

void instance_norm_forward(const float* x, float* y, float* mean, float* inverse_deviation,
                           const InstanceNormRows& rows, int begin, int end) {
  const float share = 1.0F / static_cast<float>(rows.positions);
  for (int c = begin; c < end; ++c)
    for (int first = 0; first < rows.batch; first += kNormImages) {
      const int images = std::min(kNormImages, rows.batch - first);
      const std::ptrdiff_t at = std::ptrdiff_t{c} * rows.positions * rows.batch + first;
      float *m = mean + std::ptrdiff_t{c} * rows.batch + first, *inverse = inverse_deviation + (m - mean);
      float sum[kNormImages] = {}, squares[kNormImages] = {};
      for (int p = 0; p < rows.positions; ++p) {
        const float* row = x + at + std::ptrdiff_t{p} * rows.batch;
        for (int i = 0; i < images; ++i) sum[i] += row[i];
      }
      for (int i = 0; i < images; ++i) m[i] = sum[i] * share;
      for (int p = 0; p < rows.positions; ++p) {
        const float* row = x + at + std::ptrdiff_t{p} * rows.batch;
        for (int i = 0; i < images; ++i) squares[i] += (row[i] - m[i]) * (row[i] - m[i]);
      }
      for (int i = 0; i < images; ++i) inverse[i] = 1.0F / std::sqrt(squares[i] * share + rows.epsilon);
      for (int p = 0; p < rows.positions; ++p) {
        const float* row = x + at + std::ptrdiff_t{p} * rows.batch;
        float* out = y + at + std::ptrdiff_t{p} * rows.batch;
        for (int i = 0; i < images; ++i) {
          const float n = (row[i] - m[i]) * inverse[i];
          out[i] = n > 0 ? n : rows.slope * n;
        }
      }
    }
}

// With n = (x - mean) / deviation and dn = dy leaky'(n): dx = (dn - mean(dn) - n mean(dn n)) / deviation.
void instance_norm_backward(float* dy, const float* x, const float* mean, const float* inverse_deviation,
                            const InstanceNormRows& rows, int begin, int end) {
  const float share = 1.0F / static_cast<float>(rows.positions);
  for (int c = begin; c < end; ++c)
    for (int first = 0; first < rows.batch; first += kNormImages) {
      const int images = std::min(kNormImages, rows.batch - first);
      const std::ptrdiff_t at = std::ptrdiff_t{c} * rows.positions * rows.batch + first;
      const float *m = mean + std::ptrdiff_t{c} * rows.batch + first, *inverse = inverse_deviation + (m - mean);
      float sum[kNormImages] = {}, dot[kNormImages] = {};
      for (int p = 0; p < rows.positions; ++p) {
        const float* row = x + at + std::ptrdiff_t{p} * rows.batch;
        float* g = dy + at + std::ptrdiff_t{p} * rows.batch;
        for (int i = 0; i < images; ++i) {
          const float n = (row[i] - m[i]) * inverse[i];
          g[i] *= n > 0 ? 1.0F : rows.slope;
          sum[i] += g[i];
          dot[i] += g[i] * n;
        }
      }
      for (int p = 0; p < rows.positions; ++p) {
        const float* row = x + at + std::ptrdiff_t{p} * rows.batch;
        float* g = dy + at + std::ptrdiff_t{p} * rows.batch;
        for (int i = 0; i < images; ++i) {
          const float n = (row[i] - m[i]) * inverse[i];
          g[i] = (g[i] - sum[i] * share - n * (dot[i] * share)) * inverse[i];
        }
      }
    }
}
