#include "kernel/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"

namespace ganymede::kernel {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian and is copied as it stands");

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's limit
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 40;
constexpr const char* kMetadata = "__metadata__";

struct Range {
  std::int64_t begin, end;
  std::string name;
};

std::int64_t elements(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (const auto extent : shape) product *= extent;
  return product;
}

std::vector<std::int64_t> read_shape(const JsonNode& node, std::int64_t data_bytes) {
  std::vector<std::int64_t> shape;
  std::int64_t product = 1;
  for (const auto& extent : node.as_array()) {
    shape.push_back(extent.as_integer(0, kMaxExtent));
    // Checked after each factor, so that the product cannot overflow.
    if (shape.back() != 0 && product > data_bytes / shape.back())
      extent.fail(fmt::format("the shape holds more than the file's {} bytes", data_bytes));
    product *= shape.back();
  }
  return shape;
}

Range read_offsets(const JsonNode& node, std::string name, std::int64_t data_bytes) {
  const auto offsets = node.as_array();
  if (offsets.size() != 2) node.expected("two offsets");
  const std::int64_t begin = offsets[0].as_integer(0, data_bytes);
  return {begin, offsets[1].as_integer(begin, data_bytes), std::move(name)};
}

NamedTensor read_tensor(const JsonNode& node, std::string_view data, std::vector<Range>& ranges,
                        const std::string& name) {
  const auto bytes = static_cast<std::int64_t>(data.size());
  JsonObject in(node);
  const JsonNode type = in.required("dtype");
  if (type.as_string() != "F32") type.expected("\"F32\"");
  NamedTensor tensor{read_shape(in.required("shape"), bytes), {}};
  const JsonNode offsets = in.required("data_offsets");
  in.finish();
  const Range range = read_offsets(offsets, name, bytes);
  const std::int64_t expected = elements(tensor.shape) * static_cast<std::int64_t>(sizeof(float));
  if (range.end - range.begin != expected)
    offsets.fail(fmt::format("found {} bytes, expected {} for the shape", range.end - range.begin, expected));
  tensor.values.resize(static_cast<std::size_t>(elements(tensor.shape)));
  if (expected > 0) std::memcpy(tensor.values.data(), data.data() + range.begin, static_cast<std::size_t>(expected));
  ranges.push_back(range);
  return tensor;
}

/// Checks that every byte of data belongs to exactly one tensor.
void check_cover(const JsonNode& header, std::vector<Range> ranges, std::int64_t data_bytes) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::int64_t at = 0;
  for (const auto& range : ranges) {
    if (range.begin != at)
      header.fail(fmt::format("tensor \"{}\" begins at byte {}, expected {}: {}", range.name, range.begin, at,
                              range.begin < at ? "tensors overlap" : "there is a gap"));
    at = range.end;
  }
  if (at != data_bytes) header.fail(fmt::format("found {} bytes of data, expected {}", data_bytes, at));
}

}  // namespace

std::string write_safetensors(const SafeTensors& content) {
  nlohmann::json header = nlohmann::json::object();
  if (!content.metadata.empty()) header[kMetadata] = content.metadata;
  std::size_t offset = 0;
  for (const auto& [name, tensor] : content.tensors) {
    assert(static_cast<std::size_t>(elements(tensor.shape)) == tensor.values.size());
    const std::size_t end = offset + tensor.values.size() * sizeof(float);
    header[name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');  // data aligned to 8 bytes

  std::string out(kLengthBytes, '\0');
  const std::uint64_t length = text.size();
  std::memcpy(out.data(), &length, sizeof length);
  out += text;
  for (const auto& [name, tensor] : content.tensors)
    out.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float));
  return out;
}

SafeTensors read_safetensors(const std::filesystem::path& file) {
  return parse_safetensors(read_file(file), file.string());
}

SafeTensors parse_safetensors(std::string_view bytes, const std::string& file) {
  std::uint64_t length = 0;
  if (bytes.size() < kLengthBytes)
    throw ConfigError(fmt::format("{}: found {} bytes, expected a safetensors file", file, bytes.size()));
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMaxHeaderBytes || length > bytes.size() - kLengthBytes)
    throw ConfigError(fmt::format("{}: found a header length of {}, expected at most {}: the file's own length", file,
                                  length, std::min(kMaxHeaderBytes, bytes.size() - kLengthBytes)));
  const std::string_view text(bytes.data() + kLengthBytes, static_cast<std::size_t>(length));
  const std::string_view data = bytes.substr(kLengthBytes + static_cast<std::size_t>(length));

  const JsonNode header = JsonNode::parse(text, file);
  SafeTensors content;
  std::vector<Range> ranges;
  for (const auto& [name, node] : header.as_map()) {
    if (name == kMetadata) {
      for (const auto& [key, value] : node.as_map()) content.metadata[key] = value.as_string();
      continue;
    }
    content.tensors[name] = read_tensor(node, data, ranges, name);
  }
  check_cover(header, std::move(ranges), static_cast<std::int64_t>(data.size()));
  return content;
}

}  // namespace ganymede::kernel
