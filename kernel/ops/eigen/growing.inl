// The loops of progressively growing networks: biases with equalised learning rates, pixel norm, blocks of a grid. Part
// of kernels.cpp.

void bias_leaky_forward(float* x, const float* bias, float factor, float slope, int length, int begin, int end) {
  for (int r = begin; r < end; ++r) {
    float* row = x + std::ptrdiff_t{r} * length;
    affine_leaky(row, row, factor, bias[r], slope, length);
  }
}

void bias_leaky_backward(float* dy, const float* y, float* d_bias, float factor, float slope, bool accumulate,
                         int length, int begin, int end) {
  for (int r = begin; r < end; ++r) {
    float* g = dy + std::ptrdiff_t{r} * length;
    const float* out = y + std::ptrdiff_t{r} * length;
    for (int i = 0; i < length; ++i) g[i] *= out[i] > 0 ? 1.0F : slope;
    Rows row(g, length);
    if (d_bias != nullptr) d_bias[r] = (accumulate ? d_bias[r] : 0.0F) + row.sum();
    row *= factor;
  }
}

// Columns that pixel_norm handles at a time, so that they stay in the cache.
constexpr int kNormColumns = 1024;

void pixel_norm_forward(float* x, float* scale, int channels, float epsilon, int length, int begin, int end) {
  const float inverse_channels = 1.0F / static_cast<float>(channels);
  for (int first = begin; first < end; first += kNormColumns) {
    const int columns = std::min(kNormColumns, end - first);
    Rows sum(scale + first, columns);
    sum.setZero();
    for (int c = 0; c < channels; ++c) sum += ConstRows(x + std::ptrdiff_t{c} * length + first, columns).square();
    sum = (sum * inverse_channels + epsilon).sqrt().inverse();
    for (int c = 0; c < channels; ++c) Rows(x + std::ptrdiff_t{c} * length + first, columns) *= sum;
  }
}

void pixel_norm_backward(float* dy, const float* y, const float* scale, int channels, int length, int begin, int end) {
  // With r the factor: dx = r (dy - y mean over the channels of dy y).
  float memory[kNormColumns];
  const float inverse_channels = 1.0F / static_cast<float>(channels);
  for (int first = begin; first < end; first += kNormColumns) {
    const int columns = std::min(kNormColumns, end - first);
    Rows dot(memory, columns);
    dot.setZero();
    const auto dy_of = [&](int c) { return Rows(dy + std::ptrdiff_t{c} * length + first, columns); };
    const auto y_of = [&](int c) { return ConstRows(y + std::ptrdiff_t{c} * length + first, columns); };
    for (int c = 0; c < channels; ++c) dot += dy_of(c) * y_of(c);
    dot *= inverse_channels;
    const ConstRows factor(scale + first, columns);
    for (int c = 0; c < channels; ++c) {
      Rows g = dy_of(c);
      g = (g - y_of(c) * dot) * factor;
    }
  }
}

/// Calls visit(coarse index, fine index, element) for every element of every block in rows [begin, end) of the coarse
/// grid [channels x frames x height].
template <class Visit>
void for_each_of_block(const Blocks& b, int begin, int end, const Visit& visit) {
  const int frames = b.frames / b.block_frames, height = b.height / b.block, width = b.width / b.block;
  for (int row = begin; row < end; ++row) {
    const int i = row % height, f = row / height % frames, c = row / height / frames;
    for (int j = 0; j < width; ++j) {
      const std::ptrdiff_t coarse = (std::ptrdiff_t{row} * width + j) * b.batch;
      for (int e = 0; e < b.block_frames * b.block * b.block; ++e) {
        const int frame = f * b.block_frames + e / (b.block * b.block);
        const int fine_row = i * b.block + e / b.block % b.block, column = j * b.block + e % b.block;
        const std::ptrdiff_t plane = std::ptrdiff_t{c} * b.frames + frame;
        visit(coarse, ((plane * b.height + fine_row) * b.width + column) * b.batch, e);
      }
    }
  }
}

void pool(float* coarse, const float* fine, const Blocks& blocks, float factor, int begin, int end) {
  for_each_of_block(blocks, begin, end, [&](std::ptrdiff_t to, std::ptrdiff_t from, int element) {
    Rows sum(coarse + to, blocks.batch);
    const ConstRows part(fine + from, blocks.batch);
    if (element == 0)
      sum = factor * part;
    else
      sum += factor * part;
  });
}

void upsample(float* fine, const float* coarse, const Blocks& blocks, float factor, int begin, int end) {
  for_each_of_block(blocks, begin, end, [&](std::ptrdiff_t from, std::ptrdiff_t to, int) {
    Rows(fine + to, blocks.batch) = factor * ConstRows(coarse + from, blocks.batch);
  });
}

void combine(float* y, float a, const float* x, float b, std::size_t begin, std::size_t end) {
  if (b == 0) {
    for (std::size_t i = begin; i < end; ++i) y[i] = a * x[i];
    return;
  }
#pragma GCC ivdep
  for (std::size_t i = begin; i < end; ++i) y[i] = a * x[i] + b * y[i];
}
