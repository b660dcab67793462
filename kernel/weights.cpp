#include "kernel/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/errors.hpp"
#include "kernel/safetensors.hpp"

namespace ganymede::kernel {
namespace {

/// Calls visit(full name, range, device pointer) for every array of the GAN.
template <class Visit>
void for_each_array(const Gan& gan, const Visit& visit) {
  for (const Network* network : {&gan.generator, &gan.discriminator}) {
    for (const auto& range : network->parameters())
      visit(network->name() + "." + range.name, range, network->parameter_data() + range.offset);
    for (const auto& range : network->statistics())
      visit(network->name() + "." + range.name, range, network->statistic_data() + range.offset);
  }
}

std::vector<std::int64_t> wide(const std::vector<int>& shape) { return {shape.begin(), shape.end()}; }

}  // namespace

std::string write_weights(const Gan& gan, Ops& ops) {
  SafeTensors content;
  content.metadata = {{"format", "pt"}, {"model", gan.model}};
  for_each_array(gan, [&](const std::string& name, const NamedRange& range, const float* data) {
    NamedTensor tensor{wide(range.shape), std::vector<float>(range.size)};
    ops.read(tensor.values, data);
    content.tensors[name] = std::move(tensor);
  });
  return write_safetensors(content);
}

void read_weights(Gan& gan, Ops& ops, const std::filesystem::path& file) {
  const SafeTensors content = read_safetensors(file);
  std::size_t known = 0;
  // All is checked before anything is written: a wrong file leaves the GAN as it was.
  for_each_array(gan, [&](const std::string& name, const NamedRange& range, const float*) {
    const auto found = content.tensors.find(name);
    if (found == content.tensors.end()) throw ConfigError(fmt::format("{}: no tensor \"{}\"", file.string(), name));
    if (found->second.shape != wide(range.shape))
      throw ConfigError(fmt::format("{}: /{}: found shape [{}], expected [{}] for {}", file.string(), name,
                                    fmt::join(found->second.shape, ", "), fmt::join(range.shape, ", "), gan.model));
    ++known;
  });
  if (known != content.tensors.size())
    throw ConfigError(fmt::format("{}: found {} tensors, expected the {} of {}", file.string(), content.tensors.size(),
                                  known, gan.model));
  for_each_array(gan, [&](const std::string& name, const NamedRange&, float* data) {
    ops.write(data, content.tensors.at(name).values);
  });
}

}  // namespace ganymede::kernel
