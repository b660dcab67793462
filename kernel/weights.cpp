#include "kernel/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::kernel {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian and is copied as it stands");

constexpr std::size_t kLengthBytes = 8;
/// A tenth of the reference implementation's limit, and enough for 50,000 tensors: a parsed header needs far more
/// memory.
constexpr std::size_t kMaxHeaderBytes = 10'000'000;
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

/// The header's entry of one tensor. Its values are copied later, when all ranges are known not to overlap: otherwise
/// many tensors could name the same bytes, and need far more memory than the file.
struct Described {
  std::vector<std::int64_t> shape;
  Range range;
};

Described read_description(const JsonNode& node, std::int64_t data_bytes, const std::string& name) {
  JsonObject in(node);
  const JsonNode type = in.required("dtype");
  if (type.as_string() != "F32") type.expected("\"F32\"");
  std::vector<std::int64_t> shape = read_shape(in.required("shape"), data_bytes);
  const JsonNode offsets = in.required("data_offsets");
  in.finish();
  Range range = read_offsets(offsets, name, data_bytes);
  const std::int64_t expected = elements(shape) * static_cast<std::int64_t>(sizeof(float));
  if (range.end - range.begin != expected)
    offsets.fail(fmt::format("found {} bytes, expected {} for the shape", range.end - range.begin, expected));
  return {std::move(shape), std::move(range)};
}

/// Checks that every byte of data belongs to exactly one tensor.
void check_cover(const JsonNode& header, const std::vector<Described>& tensors, std::int64_t data_bytes) {
  std::vector<Range> ranges;
  for (const Described& tensor : tensors) ranges.push_back(tensor.range);
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
  Json header = Json::object();
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
  std::vector<Described> tensors;
  for (const auto& [name, node] : header.as_map()) {
    if (name == kMetadata) {
      for (const auto& [key, value] : node.as_map()) content.metadata[key] = value.as_string();
      continue;
    }
    tensors.push_back(read_description(node, static_cast<std::int64_t>(data.size()), name));
  }
  check_cover(header, tensors, static_cast<std::int64_t>(data.size()));
  for (Described& tensor : tensors) {
    const std::string_view bytes_of_it = data.substr(static_cast<std::size_t>(tensor.range.begin),
                                                     static_cast<std::size_t>(tensor.range.end - tensor.range.begin));
    std::vector<float> values(bytes_of_it.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), bytes_of_it.data(), bytes_of_it.size());
    content.tensors[tensor.range.name] = {std::move(tensor.shape), std::move(values)};
  }
  return content;
}

namespace {

using Ranges = std::vector<NamedRange>;
using Extents = std::vector<std::int64_t>;

constexpr const char* kAverage = "generator.average";

/// Calls visit(full name, shape, device pointer, arrays at that pointer) for every tensor of a file.
template <class Visit>
void for_each_tensor(const Gan& gan, bool moments, const Visit& visit) {
  const auto each_of = [&](const Network& network, const Ranges& ranges, float* data) {
    for (NamedRange range : ranges) {
      float* at = data + range.offset;
      range.offset = range.packed_offset = 0;
      visit(network.name() + "." + range.name, Extents(range.shape.begin(), range.shape.end()), at, Ranges{range});
    }
  };
  const auto all_of = [&](const Network& network, const std::string& name, float* data) {
    visit(name, Extents{static_cast<std::int64_t>(network.parameter_count())}, data, network.parameters());
  };
  for (const Network* network : {&gan.generator, &gan.discriminator}) {
    each_of(*network, network->parameters(), network->parameter_data());
    each_of(*network, network->statistics(), network->statistic_data());
    if (!moments) continue;
    all_of(*network, network->name() + ".adam.first", network->moment_data());
    all_of(*network, network->name() + ".adam.second", network->moment_data(1));
  }
  if (moments && gan.has_average()) all_of(gan.generator, kAverage, gan.average.floats());
}

}  // namespace

bool holds_average(const SafeTensors& content) { return content.tensors.contains(kAverage); }

namespace {

std::size_t floats_of(const Extents& shape) {
  std::int64_t product = 1;
  for (const auto extent : shape) product *= extent;
  return static_cast<std::size_t>(product);
}

}  // namespace

SafeTensors tensors_of(const Gan& gan, TensorOps& ops, bool moments) {
  SafeTensors content;
  content.metadata = {{"format", "pt"}, {"model", gan.model}};
  for_each_tensor(gan, moments, [&](const std::string& name, const Extents& shape, float* data, const Ranges& ranges) {
    NamedTensor tensor{shape, std::vector<float>(floats_of(shape))};
    for (const auto& range : ranges)
      ops.read_array({tensor.values.data() + range.packed_offset, range.size}, data + range.offset, range.shape);
    content.tensors[name] = std::move(tensor);
  });
  return content;
}

void set_tensors(Gan& gan, TensorOps& ops, const SafeTensors& content, bool moments, const std::string& file) {
  std::size_t known = 0;
  // Everything is checked before anything is written, so that a wrong file leaves the GAN as it was.
  for_each_tensor(gan, moments, [&](const std::string& name, const Extents& shape, const float*, const Ranges&) {
    const auto found = content.tensors.find(name);
    if (found == content.tensors.end()) throw ConfigError(fmt::format("{}: no tensor \"{}\"", file, name));
    if (found->second.shape != shape)
      throw ConfigError(fmt::format("{}: /{}: found shape [{}], expected [{}] for {}", file, name,
                                    fmt::join(found->second.shape, ", "), fmt::join(shape, ", "), gan.model));
    ++known;
  });
  if (known != content.tensors.size())
    throw ConfigError(
        fmt::format("{}: found {} tensors, expected the {} of {}", file, content.tensors.size(), known, gan.model));
  for_each_tensor(gan, moments, [&](const std::string& name, const Extents&, float* data, const Ranges& ranges) {
    const std::vector<float>& values = content.tensors.at(name).values;
    for (const auto& range : ranges)
      ops.write_array(data + range.offset, {values.data() + range.packed_offset, range.size}, range.shape);
  });
}

std::string write_weights(const Gan& gan, TensorOps& ops) { return write_safetensors(tensors_of(gan, ops, false)); }

void read_weights(Gan& gan, TensorOps& ops, const std::filesystem::path& file) {
  set_tensors(gan, ops, read_safetensors(file), false, file.string());
}

}  // namespace ganymede::kernel
