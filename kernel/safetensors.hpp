#pragma once
// The safetensors format: an 8-byte little-endian header length, a JSON header, raw data. Only float32 is used here.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ganymede::kernel {

struct NamedTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
  bool operator==(const NamedTensor&) const = default;
};

struct SafeTensors {
  std::map<std::string, NamedTensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// The file's bytes; tensors in the order of their names, without gaps.
std::string write_safetensors(const SafeTensors& content);

/// Strict, because a file may come from anywhere: ConfigError naming the file and the place when the header's length is
/// a lie, the JSON is malformed, a type is not F32, offsets overlap, leave gaps, contradict a shape or leave the file.
SafeTensors read_safetensors(const std::filesystem::path& file);
/// The same of bytes that stood in `file`.
SafeTensors parse_safetensors(std::string_view bytes, const std::string& file);

}  // namespace ganymede::kernel
