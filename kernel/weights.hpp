#pragma once
// A GAN's weights as safetensors. Names are "<network>.<layer>.<parameter>" with PyTorch's parameter names and layouts,
// so that load_state_dict accepts them: "generator.dense1.weight" is [outputs, inputs] as in nn.Linear;
// "generator.norm1.weight", ".bias", ".running_mean" and ".running_var" are as in nn.BatchNorm1d.

#include <filesystem>
#include <string>

#include "kernel/gan.hpp"
#include "kernel/safetensors.hpp"

namespace ganymede::kernel {

/// Reads parameters and moving statistics from the device. With `moments` also Adam's moments as "<network>.adam.first"
/// and ".second" ([parameters]), and "generator.average" if the GAN keeps an average.
SafeTensors tensors_of(const Gan& gan, TensorOps& ops, bool moments);

/// True if the tensors include an average of the generator's parameters.
bool holds_average(const SafeTensors& content);

/// Writes the tensors into a prepared GAN. If one is missing, unknown or of another shape it throws ConfigError with
/// `file`, and the GAN stays as it was.
void set_tensors(Gan& gan, TensorOps& ops, const SafeTensors& content, bool moments, const std::string& file);

/// The bytes of a weights file: parameters and moving statistics.
std::string write_weights(const Gan& gan, TensorOps& ops);

/// Reads a weights file into a prepared GAN, without Adam's moments, which it does not hold. Throws ConfigError as
/// set_tensors does.
void read_weights(Gan& gan, TensorOps& ops, const std::filesystem::path& file);

}  // namespace ganymede::kernel
