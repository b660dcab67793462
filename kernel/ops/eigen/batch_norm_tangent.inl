// The tangent of batch norm and its backward pass, for the gradient penalty. Part of kernels.cpp.
//
// Let s be the deviation, N the batch, n = (x - mean) / s and P v = v - mean(v) - n mean(n v). The tangent of y =
// leaky(scale n + shift) is y_dot = leaky' scale / s P x_dot. For an adjoint v of y_dot, already multiplied by leaky',
// the number q = v . y_dot = scale / s v . P x_dot has the derivatives
//   with respect to x_dot: scale / s P v
//   with respect to scale: q / scale
//   with respect to x: -q n / (s N) - scale / (s^2 N) P (v (n . x_dot) + x_dot (n . v))
// because ds/dx = n / N and dn = P dx / s.

void batch_norm_tangent(float* y_dot, const float* x_dot, const float* x, const BatchNormRows& rows, int batch,
                        int begin, int end) {
  const float inverse_batch = 1.0F / static_cast<float>(batch);
  for (int r = begin; r < end; ++r) {
    const std::ptrdiff_t at = std::ptrdiff_t{r} * batch;
    const float mean = rows.mean[r], inverse = rows.inverse_deviation[r];
    const float factor = rows.scale[r] * inverse, offset = rows.shift[r] - mean * factor, slope = rows.slope;
    const ConstRows in(x + at, batch), direction(x_dot + at, batch);
    const float mean_dot = direction.sum() * inverse_batch;
    const float along = (direction * (in - mean)).sum() * inverse * inverse_batch;  // mean of n x_dot
    for (int i = 0; i < batch; ++i) {
      const float value = x[at + i], n = (value - mean) * inverse;
      const float passed = value * factor + offset > 0 ? factor : slope * factor;
      y_dot[at + i] = passed * (x_dot[at + i] - mean_dot - n * along);
    }
  }
}

void batch_norm_tangent_backward(const BatchNormTangents& t, const float* x, const BatchNormRows& rows, float* d_scale,
                                 float* d_shift, bool accumulate, int batch, int begin, int end) {
  const float inverse_batch = 1.0F / static_cast<float>(batch);
  for (int r = begin; r < end; ++r) {
    const std::ptrdiff_t at = std::ptrdiff_t{r} * batch;
    const float mean = rows.mean[r], inverse = rows.inverse_deviation[r], scale = rows.scale[r];
    const float factor = scale * inverse, offset = rows.shift[r] - mean * factor, slope = rows.slope;
    const auto n_of = [&](int i) { return (x[at + i] - mean) * inverse; };
    const auto through = [&](int i) { return x[at + i] * factor + offset > 0 ? 1.0F : slope; };
    double sum_v = 0, n_v = 0, sum_dot = 0, n_dot = 0, v_dot = 0, sum_y = 0, n_y = 0;
    for (int i = 0; i < batch; ++i) {
      const float n = n_of(i), mask = through(i), v = mask * t.dy_dot[at + i], dot = t.x_dot[at + i];
      const float y = t.dy == nullptr ? 0.0F : mask * t.dy[at + i];
      sum_v += double{v};
      n_v += double{n * v};
      sum_dot += double{dot};
      n_dot += double{n * dot};
      v_dot += double{v * dot};
      sum_y += double{y};
      n_y += double{n * y};
    }
    const double many = batch;
    const auto q = static_cast<float>(double{factor} * (v_dot - sum_v * sum_dot / many - n_v * n_dot / many));
    // P subtracts from w = v (n . x_dot) + x_dot (n . v) its mean and its component along n.
    const auto nv = static_cast<float>(n_v), nd = static_cast<float>(n_dot);
    const auto mean_w = static_cast<float>((sum_v * n_dot + sum_dot * n_v) / many);
    const auto along_w = static_cast<float>(2 * n_v * n_dot / many);
    const auto mean_v = static_cast<float>(sum_v / many), along_v = static_cast<float>(n_v / many);
    const auto mean_y = static_cast<float>(sum_y / many), along_y = static_cast<float>(n_y / many);
    const float curve = factor * inverse * inverse_batch;
    for (int i = 0; i < batch; ++i) {
      const float n = n_of(i), mask = through(i), v = mask * t.dy_dot[at + i], dot = t.x_dot[at + i];
      const float y = t.dy == nullptr ? 0.0F : mask * t.dy[at + i];
      t.dx_dot[at + i] = factor * (v - mean_v - n * along_v);
      t.dx[at + i] = factor * (y - mean_y - n * along_y) - q * inverse * inverse_batch * n -
                     curve * (v * nd + dot * nv - mean_w - n * along_w);
    }
    if (d_shift != nullptr) {
      d_shift[r] = (accumulate ? d_shift[r] : 0.0F) + static_cast<float>(sum_y);
      d_scale[r] = (accumulate ? d_scale[r] : 0.0F) + static_cast<float>(n_y) + (scale != 0 ? q / scale : 0.0F);
    }
  }
}
