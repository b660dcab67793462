#include "serve/job_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "report/differences.hpp"
#include "report/documents.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"

namespace ganymede::serve {
namespace {

/// Bytes of a result that is compared, at most: a parsed result takes many times its size in memory.
constexpr std::uintmax_t kMaxComparedBytes = 32 << 20;

/// Time and cost of the runs of a sweep that differ only in their seed.
struct Measured {
  std::vector<double> seconds, usd;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::map<std::string, Measured> measured_runs(const Json& sweep) {
  std::map<std::string, Measured> all;
  for (const Json& run : sweep.at("runs")) {
    const Json& what = run.at("run");
    const auto member = [&](const char* key) { return what.at(key).get<std::string>(); };
    Measured& measured = all[fmt::format("{} {}, {}, {}, {}", member("platform"), member("market"),
                                         member("allocation"), member("scheme"), member("policy"))];
    measured.seconds.push_back(run.at("time").at("total_s").get<double>());
    const Json& usd = run.at("cost").at("total_usd");
    if (usd.is_string()) measured.usd.push_back(std::stod(usd.get<std::string>()));
  }
  return all;
}

std::string change(double before, double after) {
  return before > 0 ? fmt::format("{:+.1f} %", 100 * (after / before - 1)) : "";
}

std::string sweep_differences(const Json& before, const Json& after) {
  const auto old = measured_runs(before), now = measured_runs(after);
  report::Table table({"configuration", ">time", ">then", ">change", ">USD", ">then", ">change"});
  std::string only;
  for (const auto& [name, was] : old) {
    const auto found = now.find(name);
    if (found == now.end()) {
      only += fmt::format("only in the first: {}\n", name);
      continue;
    }
    const Measured& is = found->second;
    const bool priced = !was.usd.empty() && !is.usd.empty();
    table.add({name, report::clock(median(was.seconds)), report::clock(median(is.seconds)),
               change(median(was.seconds), median(is.seconds)), priced ? report::usd(median(was.usd)) : "",
               priced ? report::usd(median(is.usd)) : "", priced ? change(median(was.usd), median(is.usd)) : ""});
  }
  for (const auto& [name, is] : now)
    if (!old.contains(name)) only += fmt::format("only in the second: {}\n", name);
  return table.text(report::kAnyWidth) + (only.empty() ? "" : "\n" + only) + "\nMedians over the seeds.\n";
}

}  // namespace

std::string differences_of_results(const std::filesystem::path& before, const std::filesystem::path& after) {
  for (const auto& file : {before, after}) {
    std::error_code ignored;
    if (std::filesystem::file_size(file, ignored) > kMaxComparedBytes)
      throw ConfigError("a result is too large to compare here; `ganymede diff` compares plans of any size");
  }
  const auto kinds = {report::DocumentKind::sweep, report::DocumentKind::plan};
  const report::Document first = report::load_document(before, kinds), second = report::load_document(after, kinds);
  if (first.kind == report::DocumentKind::sweep && second.kind == report::DocumentKind::sweep)
    return sweep_differences(first.json(), second.json());
  return report::differences_text(report::differences_of(first, second, {}));
}

}  // namespace ganymede::serve
