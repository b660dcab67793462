#pragma once
// A GAN's weights as safetensors. Names are "<network>.<layer>.<parameter>" with PyTorch's parameter names and layouts,
// so that load_state_dict takes them: "generator.dense1.weight" is [outputs, inputs] as in nn.Linear,
// "generator.norm1.weight", ".bias",
// ".running_mean" and ".running_var" as in nn.BatchNorm1d.

#include <filesystem>
#include <string>

#include "kernel/gan.hpp"
#include "kernel/safetensors.hpp"

namespace ganymede::kernel {

/// Parameters and moving statistics; with `moments` also Adam's, as "<network>.adam.first" and ".second", [parameters],
/// and "generator.average" where there is one.
SafeTensors tensors_of(const Gan& gan, TensorOps& ops, bool moments);

/// Whether they are of a GAN with an average.
bool holds_average(const SafeTensors& content);

/// Into a prepared GAN; only if all fit. ConfigError naming `file` when a tensor is missing, unknown or of another
/// shape.
void set_tensors(Gan& gan, TensorOps& ops, const SafeTensors& content, bool moments, const std::string& file);

/// The file's bytes.
std::string write_weights(const Gan& gan, TensorOps& ops);

/// Into a prepared GAN. ConfigError when a tensor is missing, unknown or of another shape. Adam's moments are not in
/// the file.
void read_weights(Gan& gan, TensorOps& ops, const std::filesystem::path& file);

}  // namespace ganymede::kernel
