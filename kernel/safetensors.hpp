#pragma once
// The safetensors format: an 8-byte little-endian header length, a JSON header, raw data. Only float32 is used here.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede::kernel {

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

}  // namespace ganymede::kernel
