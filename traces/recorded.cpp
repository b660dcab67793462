#include "traces/recorded.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/embedded.hpp"
#include "common/file.hpp"

namespace ganymede {

const std::vector<std::string>& recorded_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const EmbeddedText& trace : embedded_traces()) all.emplace_back(trace.name);
    return all;
  }();
  return names;
}

std::string trace_name(const JsonNode& at) {
  const std::string name = at.as_string();
  return name.starts_with(kRecorded) ? name : (at.directory() / name).string();
}

std::string trace_text(const JsonNode& at) {
  const std::string name = at.as_string();
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

}  // namespace ganymede
