#pragma once
// Convolutions with equalised learning rates (Karras et al. 2018), which several models are made of.

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "kernel/layer.hpp"

namespace ganymede::kernel {

/// Options of a convolution with an equalised learning rate, and of the activation after it.
struct Equalized {
  float slope = 0.2F;        ///< slope of the LeakyReLU below zero; 1: no activation
  float gain = 1.41421356F;  ///< the result is scaled by gain / sqrt(fan in); default: sqrt(2)
  bool transposed = false;   ///< runs from the shape's outputs to its inputs
  float rate = 1;            ///< by which weights learn faster than others
};
inline constexpr Equalized kPlain{.slope = 1, .gain = 1};  // for the convolutions that make colours and the logit

struct Builder {
  Layers layers;

  void add(std::unique_ptr<Layer> layer) { layers.push_back(std::move(layer)); }
  /// Adds two layers of one name: a convolution whose weights start as normal(0, 1 / rate), then a scale of rate gain /
  /// sqrt(fan in), bias and activation. The scale is He's initial deviation (He et al. 2015) if gain is sqrt(2). Adam
  /// thus moves every weight at the same relative speed, whatever the layer's width.
  void convolution(const std::string& name, const ConvolutionShape& shape, Equalized options = {}) {
    const bool back = options.transposed;
    const double fan_in = double{1} * (back ? shape.out_channels : shape.in_channels) * shape.taps();
    const int channels = back ? shape.in_channels : shape.out_channels;
    add((back ? transposed_convolution : kernel::convolution)(name, shape, 1 / options.rate));
    add(bias_leaky(name, channels, (back ? shape.in_features() : shape.out_features()) / channels,
                   static_cast<float>(double{options.rate} * double{options.gain} / std::sqrt(fan_in)), options.slope));
  }
  void append(Layers more) {
    for (auto& layer : more) add(std::move(layer));
  }
};

}  // namespace ganymede::kernel
