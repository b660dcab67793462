#pragma once
// A GAN's weights as safetensors. Names are "<network>.<layer>.<parameter>" with PyTorch's parameter names and layouts,
// so that load_state_dict accepts them: "generator.dense1.weight" is [outputs, inputs] as in nn.Linear;
// "generator.norm1.weight", ".bias", ".running_mean" and ".running_var" are as in nn.BatchNorm1d.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/gan.hpp"

namespace ganymede::kernel {

// The safetensors format: an 8-byte little-endian header length, a JSON header, raw data. Only float32 is used here.

/// A tensor's shape and its values in row-major order.
struct NamedTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
  bool operator==(const NamedTensor&) const = default;
};

struct SafeTensors {
  std::map<std::string, NamedTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// The bytes of a file with these tensors in the order of their names, without gaps.
std::string write_safetensors(const SafeTensors& content);

/// Reads a file. It is strict because files may come from anywhere: it throws ConfigError with file and place if the
/// header's length is wrong, the JSON is malformed, a type is not F32, or offsets overlap, leave gaps, contradict a
/// shape or point beyond the file.
SafeTensors read_safetensors(const std::filesystem::path& file);
/// The same for bytes in memory; messages call them `file`.
SafeTensors parse_safetensors(std::string_view bytes, const std::string& file);

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
