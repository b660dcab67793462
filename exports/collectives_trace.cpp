#include "exports/collectives_trace.hpp"

#include <fmt/format.h>

#include <vector>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "exports/chrome_trace.hpp"
#include "report/numbers.hpp"

namespace ganymede::exports {
namespace {

std::string endpoint_name(int endpoint, int ranks) {
  return endpoint < ranks ? fmt::format("rank {}", endpoint) : fmt::format("switch {}", endpoint - ranks);
}

}  // namespace

std::string collectives_trace(const Json& rows, int ranks) {
  std::vector<TimelineSpan> spans;
  for (const auto& row : rows) {
    const std::string process =
        fmt::format("{} {}", row["scheme"].get<std::string>(), to_string(Bytes{row["bytes"].get<double>()}));
    for (const auto& span : row["spans"]) {
      const int source = span[0].get<int>(), destination = span[1].get<int>();
      spans.push_back({process,
                       source,
                       endpoint_name(source, ranks) + " sends",
                       fmt::format("round {} to {}", report::int64_of(span[2]), endpoint_name(destination, ranks)),
                       Seconds{span[4].get<double>()},
                       Seconds{span[5].get<double>()},
                       {{"bytes", span[3].dump()}}});
    }
  }
  return chrome_trace(spans);
}

}  // namespace ganymede::exports
