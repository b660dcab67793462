#pragma once
// A few training steps of each kind of model, and their comparison between backends.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "kernel/gan_step.hpp"
#include "kernel/models/models.hpp"
#include "kernel/ops/backend.hpp"
#include "kernel/samples.hpp"
#include "kernel/weights.hpp"

namespace ganymede::kernel {

struct Steps {
  const char* model;
  AdversarialLoss loss;
  Growth growth = {};
  int discriminator_steps = 1;
  bool recompute = false;
};
inline void PrintTo(const Steps& steps, std::ostream* out) { *out << steps.model; }

/// The losses of some steps on random images, and the weights and samples after them.
struct Course {
  std::vector<double> losses;
  SafeTensors weights;
  std::vector<float> samples;
};
inline Course run(const Backend& backend, const Steps& what, int steps) {
  TensorOps& ops = *backend.ops;
  const Model& model = find_model(what.model);
  Gan gan = model.build(model.grows() ? ImageShape{8, 8, 3} : model.images.front(), what.growth);
  gan.prepare(ops, 3, 5,
              {.average = true,
               .gradient_penalty = has_penalty(what.loss),
               .activations = {what.recompute, Compression::none}});
  // With the usual weights instance norms divide by deviations near their epsilon, which amplifies rounding.
  for (Network* network : {&gan.generator, &gan.discriminator}) {
    std::vector<float> weights(gan.step == StepKind::cyclic ? network->parameter_floats() : 0);
    ops.read(weights, network->parameter_data());
    for (float& weight : weights) weight *= 4;
    ops.write(network->parameter_data(), weights);
  }
  StepRandom random(7);
  StepOptions options{.loss = what.loss,
                      .discriminator_steps = what.discriminator_steps,
                      .adam = model.adam,
                      .penalty = model.penalty,
                      .average_decay = 0.9F};
  // With a small epsilon Adam's first steps turn a gradient near zero into a whole step of either sign.
  options.adam.epsilon = 1e-3F;
  StepClock clock;
  RandomStream pixels(9, "tests/pixels");
  Course course;
  for (int step = 0; step < steps; ++step) {
    if (what.growth.fading) *gan.share = 0.1F * static_cast<float>(step + 1);
    begin_step(gan, ops, options);
    const Losses losses = gan_step(gan, ops, random, options, clock, [&] {
      std::vector<std::uint8_t> bytes(gan.real.size() + gan.other.size());
      for (auto& byte : bytes) byte = static_cast<std::uint8_t>(pixels.below(256));
      for (int i = 0; gan.classes > 0 && i < 3 * gan.classes; ++i)
        bytes.push_back(i % (gan.classes + 2) == 0 ? 255 : 0);
      gan.place_real(ops, bytes);
    });
    course.losses.insert(course.losses.end(), {losses.discriminator, losses.generator});
  }
  course.weights = tensors_of(gan, ops, true);
  if (!gan.takes_images()) course.samples = sample_images(gan, ops, 3, 5);
  return course;
}

inline const Steps kSteps[] = {
    {"mlp-gan", AdversarialLoss::minimax},
    {"dcgan-28", AdversarialLoss::non_saturating, {}, 2},
    {"dcgan-28", AdversarialLoss::wasserstein},
    {"dcgan-28", AdversarialLoss::r1},
    {"dcgan-32", AdversarialLoss::hinge, {}, 1, true},
    {"cgan-28", AdversarialLoss::non_saturating, {}, 2},
    {"cgan-28", AdversarialLoss::wasserstein},
    {"vae-28", AdversarialLoss::non_saturating},
    {"vae-28", AdversarialLoss::non_saturating, {}, 1, true},
    {"cyclegan-32", AdversarialLoss::least_squares},
    {"srgan-32", AdversarialLoss::least_squares},
    {"stylegan2-28", AdversarialLoss::r1},
    {"progressive-gan", AdversarialLoss::wasserstein, {1, true}},
    {"progressive-gan", AdversarialLoss::wasserstein, {1, false}},
    {"progressive-gan-video", AdversarialLoss::wasserstein, {1, true}},
};
/// How often a step loads images or labels.
inline int loads_of(const Steps& steps) {
  return steps.discriminator_steps * find_model(steps.model).build_default().loads();
}
inline std::string name_of_steps(const testing::TestParamInfo<Steps>& instance) {
  std::string name = instance.param.model + std::string("_") + std::to_string(instance.index);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// `growth`: factor by which rounding errors grow from one step to the next; a step's two losses are compared with its
/// power as tolerance.
inline void expect_alike(const Course& found, const Course& expected, double tolerance, double growth = 1) {
  ASSERT_EQ(found.losses.size(), expected.losses.size());
  for (std::size_t i = 0; i < found.losses.size(); ++i) {
    const std::size_t step = i / 2;
    EXPECT_NEAR(found.losses[i], expected.losses[i],
                tolerance * std::pow(growth, static_cast<double>(step)) * (1 + std::abs(expected.losses[i])))
        << i;
  }
  for (const auto& [name, tensor] : expected.weights.tensors) {
    if (name.find(".adam.") != std::string::npos) continue;  // with beta1 = 0 a moment is a gradient, of any size
    const auto& values = found.weights.tensors.at(name).values;
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(static_cast<double>(values[i]) - static_cast<double>(tensor.values[i]), 2);
      size += std::pow(static_cast<double>(tensor.values[i]), 2);
    }
    EXPECT_LE(std::sqrt(difference), 100 * tolerance * std::sqrt(size) + 1e-4) << name;
  }
}

/// The factor by which differences grow from one step to the next: the second derivatives of a gradient penalty amplify
/// the rounding of products, which differs between instruction sets, and between a CPU and a GPU. So do absolute
/// errors, whose gradient jumps where two images are equal.
inline double growth_of(const Steps& steps) {
  return has_penalty(steps.loss) ? 10 : find_model(steps.model).build_default().takes_images() ? 4 : 1;
}

constexpr double kGpuTolerance = 1e-4;  // of a GPU's losses, relative to those of the CPU with the same random numbers

}  // namespace ganymede::kernel
