#include "kernel/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/errors.hpp"
#include "kernel/safetensors.hpp"

namespace ganymede::kernel {
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
