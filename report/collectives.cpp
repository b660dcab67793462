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
                                             "busbw_GBps", "messages", "fidelity", "limit", "choice", "place",
                                             "difference"});
  std::int64_t size = -1;
  for (const Json& row : rows) {
    const auto bytes = int64_of(row["bytes"]);
    const double seconds = row["time_s"].get<double>();
    const auto text = [&](const char* key) { return row[key].is_null() ? "" : row[key].get<std::string>(); };
    if (!for_people) {
      table.add({std::to_string(bytes), text("scheme"), row["ranks"].dump(), text("collective"), row["time_s"].dump(),
                 row["algbw_GBps"].dump(), row["busbw_GBps"].dump(), row["messages"].dump(), text("fidelity"),
                 text("limit"), text("choice"), row["place"].dump(),
                 row.contains("difference") ? row["difference"].dump() : ""});
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

Table real_table(const OrderedJson& rows) {
  Table table({">size", "scheme", ">measured", ">95 % interval", ">predicted", ">off by", ">from a ping", ">off by",
               ">processor", ">starts apart"});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const OrderedJson& row = rows[i];
    const auto measured = row["time_s"].get<double>();
    const auto time = [](const OrderedJson& value) {
      return value.is_null() ? "" : to_string(Seconds{value.get<double>()});
    };
    const auto off = [&](const OrderedJson& value) {
      return value.is_null() ? "" : signed_percent(value.get<double>() / measured - 1);
    };
    if (i > 0 && row["bytes"] != rows[i - 1]["bytes"]) table.rule();
    table.add({to_string(Bytes{row["bytes"].get<double>()}), row["scheme"].get<std::string>(), time(row["time_s"]),
               fmt::format("{} to {}", time(row["interval_s"][0]), time(row["interval_s"][1])),
               time(row["predicted_s"]), off(row["predicted_s"]), time(row["predicted_from_ping_s"]),
               off(row["predicted_from_ping_s"]), time(row["processor_s"]), time(row["start_spread_s"])});
  }
  return table;
}

}  // namespace

std::string collectives_text(const Json& rows, std::size_t width) {
  std::string order = ranking(rows);
  // The remark on the largest size is shown: most bytes of a training resemble that.
  const Json* largest = nullptr;
  for (const Json& row : rows)
    if (row.contains("nccl_version") && (!largest || int64_of((*largest)["bytes"]) < int64_of(row["bytes"])))
      largest = &row;
  double difference = 0;
  for (const Json& row : rows) difference = std::max(difference, row.value("difference", 0.0));
  if (difference > 1e-6)  // what exact times are known to
    order += fmt::format(
        "A time is known to {:.2g} % only: nearly like ranks were merged, or picoseconds decide which messages come "
        "first. Telling more ranks apart, or moving messages by so little, changed it by as much.\n",
        100 * difference);
  if (largest) order += (*largest)["nccl_version"].get<std::string>() + ".\n";
  return table_of(rows, true).text(width) + (order.empty() ? "" : "\n" + wrap_prose(order, width));
}

std::string collectives_csv(const Json& rows) { return table_of(rows, false).csv(); }

std::string real_collectives_text(const OrderedJson& result, const std::string& machine, std::size_t width) {
  return fmt::format("{}; {}\n{}\n", result["heading"].get<std::string>(), result["ping"].get<std::string>(), machine) +
         real_table(result["rows"]).text(width);
}

std::string real_collectives_csv(const OrderedJson& rows) {
  const std::vector<std::string> keys = {
      "bytes",    "sent_bytes", "scheme",      "ranks", "time_s",           "predicted_s",   "predicted_from_ping_s",
      "messages", "repeats",    "processor_s", "scale", "ping_bytes_per_s", "ping_latency_s"};
  Table table(keys);
  for (const OrderedJson& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& key : keys) {
      const OrderedJson& value = row[key];
      cells.push_back(value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump());
    }
    table.add(cells);
  }
  return table.csv();
}

}  // namespace ganymede::report
