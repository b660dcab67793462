#include "kernel/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/errors.hpp"
#include "kernel/safetensors.hpp"

namespace ganymede::kernel {
namespace {

std::vector<std::int64_t> wide(const std::vector<int>& shape) { return {shape.begin(), shape.end()}; }

constexpr const char* kAverage = "generator.average";

/// Calls visit(full name, shape, device pointer) for every array of the GAN.
template <class Visit>
void for_each_array(const Gan& gan, bool moments, const Visit& visit) {
  for (const Network* network : {&gan.generator, &gan.discriminator}) {
    for (const auto& range : network->parameters())
      visit(network->name() + "." + range.name, wide(range.shape), network->parameter_data() + range.offset);
    for (const auto& range : network->statistics())
      visit(network->name() + "." + range.name, wide(range.shape), network->statistic_data() + range.offset);
    if (!moments) continue;
    const std::vector<std::int64_t> all{static_cast<std::int64_t>(network->parameter_count())};
    visit(network->name() + ".adam.first", all, network->moment_data());
    visit(network->name() + ".adam.second", all, network->moment_data() + network->parameter_count());
  }
  if (moments && gan.has_average())
    visit(kAverage, {static_cast<std::int64_t>(gan.generator.parameter_count())}, gan.average.floats());
}

}  // namespace

bool holds_average(const SafeTensors& content) { return content.tensors.contains(kAverage); }

namespace {

std::size_t floats_of(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (const auto extent : shape) product *= extent;
  return static_cast<std::size_t>(product);
}

}  // namespace

SafeTensors tensors_of(const Gan& gan, Ops& ops, bool moments) {
  SafeTensors content;
  content.metadata = {{"format", "pt"}, {"model", gan.model}};
  for_each_array(gan, moments, [&](const std::string& name, const std::vector<std::int64_t>& shape, const float* data) {
    NamedTensor tensor{shape, std::vector<float>(floats_of(shape))};
    ops.read(tensor.values, data);
    content.tensors[name] = std::move(tensor);
  });
  return content;
}

void set_tensors(Gan& gan, Ops& ops, const SafeTensors& content, bool moments, const std::string& file) {
  std::size_t known = 0;
  // All is checked before anything is written: a wrong file leaves the GAN as it was.
  for_each_array(gan, moments, [&](const std::string& name, const std::vector<std::int64_t>& shape, const float*) {
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
  for_each_array(gan, moments, [&](const std::string& name, const std::vector<std::int64_t>&, float* data) {
    ops.write(data, content.tensors.at(name).values);
  });
}

std::string write_weights(const Gan& gan, Ops& ops) { return write_safetensors(tensors_of(gan, ops, false)); }

void read_weights(Gan& gan, Ops& ops, const std::filesystem::path& file) {
  set_tensors(gan, ops, read_safetensors(file), false, file.string());
}

}  // namespace ganymede::kernel
