#pragma once
// A small model whose weights stay, for finite differences of the losses of a whole step.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel/gan_step.hpp"
#include "test_device.hpp"

namespace ganymede::kernel {

inline Layers chain(int inputs, int hidden, int outputs) {
  Layers layers;
  layers.push_back(dense("first", inputs, hidden));
  layers.push_back(tanh_image("tanh", hidden));
  layers.push_back(dense("last", hidden, outputs));
  return layers;
}

/// A small model whose steps change no weight, so that each of them has the same gradients.
struct StillModel {
  StillModel(TensorOps& on, Gan built) : ops(on), gan(std::move(built)) {
    gan.prepare(ops, 4, 3);
    const auto pixels = static_cast<int>(gan.real.size() + gan.other.size());
    for (int i = 0; i < static_cast<int>(gan.batch_bytes()); ++i)
      bytes.push_back(i >= pixels          ? static_cast<std::uint8_t>(i % (gan.classes + 1) == 0 ? 255 : 0)
                      : gan.takes_images() ? static_cast<std::uint8_t>(i % 5 % 2 * 255)  // far from kinks
                                           : static_cast<std::uint8_t>(37 * i % 256));
  }
  Losses step() {
    StepRandom random(5);
    StepClock clock;
    ops.timeline().begin_step();
    return gan_step(gan, ops, random, {.loss = loss, .adam = {.learning_rate = 0}}, clock,
                    [&] { gan.place_real(ops, bytes); });
  }
  TensorOps& ops;
  Gan gan;
  AdversarialLoss loss = AdversarialLoss::non_saturating;
  std::vector<std::uint8_t> bytes;
};

template <class Loss>
void expect_gradient(StillModel& still, Network& network, TestDevice& device, const Loss& loss_of) {
  still.step();
  const auto found = device.values(network.gradient_data(), network.parameter_floats());
  double largest = 0;
  for (const NamedRange& range : network.parameters())
    for (std::size_t i = range.offset; i < range.offset + range.size; ++i) {
      const double expected =
          device.slope(network.parameter_data(), i, 1.0F / 128, [&] { return loss_of(still.step()); });
      EXPECT_NEAR(found[i], expected, 2e-3 * (1 + std::abs(expected))) << range.name << " " << i;
      largest = std::max(largest, std::abs(found[i]));
    }
  EXPECT_GT(largest, 0.05) << network.name();
}

}  // namespace ganymede::kernel
