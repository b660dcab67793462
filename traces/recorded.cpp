#include "traces/recorded.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/embedded.hpp"
#include "common/file.hpp"
#include "traces/layer_list.hpp"
#include "traces/step_trace.hpp"

namespace ganymede::traces {

const std::vector<std::string>& recorded_names() {
  static const std::vector<std::string> names = names_of(embedded_traces());
  return names;
}

namespace {

/// The trace of the list of layers that `wanted` names, as a file's text. Its times follow from the V100's data sheet;
/// the choice hardly matters, because they are computed again for any other GPU.
std::string layers_text(const JsonNode& at, std::string_view wanted) {
  const std::size_t colon = wanted.find(':');
  std::optional<std::string> precision;
  if (colon != std::string_view::npos) {
    precision = wanted.substr(colon + 1);
    wanted = wanted.substr(0, colon);
    const std::vector<std::string> precisions = {"fp32", "tf32", "bf16", "fp16"};
    if (std::find(precisions.begin(), precisions.end(), *precision) == precisions.end())
      at.expected("a precision after the colon: " + list_of(precisions));
  }
  std::vector<std::string> known;
  for (const EmbeddedText& text : embedded_layers()) {
    if (text.name != wanted) {
      known.emplace_back(text.name);
      continue;
    }
    LayerList list = read_layer_list(JsonNode::parse(text.text, std::string(text.name)));
    if (precision) list.precision = *precision;
    const double rate = list.precision == "fp32" ? 15.7e12 : 125e12;
    const RooflineDevice v100{"V100", FlopsPerSecond{rate}, BytesPerSecond{900e9}, Seconds{3.8e-6}, Bytes{16e9}};
    std::vector<int> batches;
    for (int batch = 1; batch <= 256; batch *= 2) batches.push_back(batch);
    return write_step_trace(trace_of(list, batches, v100));
  }
  const auto close = nearest(wanted, known);
  at.fail(fmt::format("no list of layers \"{}\" comes with the program, expected {}{}", wanted, list_of(known),
                      close ? fmt::format("; did you mean \"{}\"?", *close) : ""));
}

}  // namespace

std::string trace_name(const JsonNode& at) {
  const std::string name = at.as_string();
  return name.starts_with(kRecorded) || name.starts_with(kLayers) ? name : (at.directory() / name).string();
}

std::string trace_text(const JsonNode& at) {
  const std::string name = at.as_string();
  if (name.starts_with(kLayers)) return layers_text(at, std::string_view(name).substr(kLayers.size()));
  if (!name.starts_with(kRecorded)) {
    try {
      return read_file(trace_name(at));
    } catch (const ConfigError& error) {
      at.fail(fmt::format("{}; `ganymede train --trace FILE` records one", error.what()));
    }
  }
  const std::string_view wanted = std::string_view(name).substr(kRecorded.size());
  for (const EmbeddedText& trace : embedded_traces())
    if (trace.name == wanted) return std::string(trace.text);
  const auto close = nearest(wanted, recorded_names());
  at.fail(fmt::format("no trace \"{}\" comes with the program, expected {}{}", wanted, list_of(recorded_names()),
                      close ? fmt::format("; did you mean \"{}\"?", *close) : ""));
}

}  // namespace ganymede::traces
