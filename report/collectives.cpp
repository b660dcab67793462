#include "report/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "common/json_value.hpp"
#include "common/units.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::report {
namespace {
Table table_of(const Json& rows, bool for_people) {
  Table table(for_people
                  ? std::vector<std::string>{">size", "scheme", ">time", ">algbw", ">busbw", ">messages", "limited by"}
                  : std::vector<std::string>{"bytes", "scheme", "ranks", "collective", "time_s", "algbw_GBps",
                                             "busbw_GBps", "messages", "fidelity", "limit", "choice", "place"});
  std::int64_t size = -1;
  for (const Json& row : rows) {
    const auto bytes = int64_of(row["bytes"]);
    const double seconds = row["time_s"].get<double>();
    const auto text = [&](const char* key) { return row[key].is_null() ? "" : row[key].get<std::string>(); };
    if (!for_people) {
      table.add({std::to_string(bytes), text("scheme"), row["ranks"].dump(), text("collective"), row["time_s"].dump(),
                 row["algbw_GBps"].dump(), row["busbw_GBps"].dump(), row["messages"].dump(), text("fidelity"),
                 text("limit"), text("choice"), row["place"].dump()});
      continue;
    }
    if (size >= 0 && bytes != size) table.rule();
    size = bytes;
    const auto rate = [&](const char* key) { return fmt::format("{:.2f} GB/s", row[key].get<double>()); };
    const std::string choice = text("choice");
    table.add({to_string(Bytes{static_cast<double>(bytes)}),
               text("scheme") + (choice.empty() ? "" : fmt::format(" ({})", choice)), to_string(Seconds{seconds}),
               rate("algbw_GBps"), rate("busbw_GBps"), row["messages"].dump(), text("limit")});
  }
  return table;
}

/// Times as multiples of the fastest: "64 MiB: nccl 1.00, ring 1.12, tree 1.90".
std::string ranking(const Json& rows) {
  std::map<std::int64_t, std::vector<const Json*>> by_size;
  for (const Json& row : rows) by_size[int64_of(row["bytes"])].push_back(&row);
  std::string out;
  for (auto& [bytes, entries] : by_size) {
    if (entries.size() < 2) continue;
    const auto place = [](const Json* row) { return int_of((*row)["place"]); };
    std::stable_sort(entries.begin(), entries.end(), [&](const Json* a, const Json* b) { return place(a) < place(b); });
    const double best = (*entries.front())["time_s"].get<double>();
    out += fmt::format("{:>10}:", to_string(Bytes{static_cast<double>(bytes)}));
    for (const Json* row : entries) {
      const double time = (*row)["time_s"].get<double>();
      out += fmt::format("{} {} {:.2f}", row == entries.front() ? "" : ",", (*row)["scheme"].get<std::string>(),
                         best > 0 ? time / best : 1.0);
    }
    out += "\n";
  }
  return out.empty() ? "" : "Ranking, fastest first, as multiples of its time:\n" + out;
}

}  // namespace

std::string collectives_text(const Json& rows, std::size_t width) {
  const std::string order = ranking(rows);
  return table_of(rows, true).text(width) + (order.empty() ? "" : "\n" + wrap_prose(order, width));
}

std::string collectives_csv(const Json& rows) { return table_of(rows, false).csv(); }

}  // namespace ganymede::report
