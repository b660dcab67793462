// Points of FID as CSV, in the columns of docs/formats.md.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/csv.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/plain_text.hpp"
#include "common/text.hpp"
#include "traces/quality_log.hpp"

namespace ganymede::traces {
namespace {

constexpr std::array<const char*, 6> kFactColumns = {"dataset", "backbone", "conditioning", "loss", "diffaug", "ada"};

struct ImagesColumn {
  const char* name;
  double images;  ///< of one unit
};
constexpr std::array<ImagesColumn, 3> kImagesColumns = {{{"images", 1}, {"kimg", 1e3}, {"d_real_kimg", 1e3}}};

std::string csv_place(const CsvTable& table, const CsvTable::Row& row, std::string_view column) {
  return fmt::format("{}: line {}: {}", table.file(), row.line, column);
}

double csv_number(const CsvTable& table, const CsvTable::Row& row, std::string_view column) {
  return positive_number(table.at(row, column), csv_place(table, row, column), "");
}

/// Images or steps, of which a training begins with none.
double count_of(const CsvTable& table, const CsvTable::Row& row, std::string_view column) {
  return number_from_zero(table.at(row, column), csv_place(table, row, column), "");
}

/// Enters a fact; a training cannot have two.
void set_fact(QualityLog& log, const std::string& name, const std::string& value, const std::string& where) {
  if (value.empty()) return;
  const auto [at, added] = log.facts.try_emplace(name, value);
  if (added || at->second == value) return;
  throw ConfigError(fmt::format("{}: found {} \"{}\" for {}, which has \"{}\" before{}", where, name, value, log.run,
                                at->second,
                                name == "reference" ? ": FIDs against different references cannot be compared" : ""));
}

void read_facts(const CsvTable& table, const CsvTable::Row& row, QualityLog& log) {
  for (const char* column : kFactColumns)
    if (table.has(column)) set_fact(log, column, table.at(row, column), csv_place(table, row, column));
  std::string reference;
  for (const char* column : {"fid_reference", "fid_images"})
    if (table.has(column) && !table.at(row, column).empty())
      reference += (reference.empty() ? "" : " ") + table.at(row, column);
  set_fact(log, "reference", reference, csv_place(table, row, "fid_reference"));
  if (table.has("reference"))
    set_fact(log, "reference", table.at(row, "reference"), csv_place(table, row, "reference"));
  if (!table.has("batch") || table.at(row, "batch").empty()) return;
  double batch = csv_number(table, row, "batch");
  if (table.has("accumulation") && !table.at(row, "accumulation").empty())
    batch *= csv_number(table, row, "accumulation");
  log.batch = batch;
}

/// Reads how many images the discriminator had seen at a point.
double read_images(const CsvTable& table, const CsvTable::Row& row, const std::string& steps,
                   const QualityLogOptions& options, QualityLog& log) {
  for (const ImagesColumn& column : kImagesColumns) {
    if (!table.has(column.name)) continue;
    const double images = count_of(table, row, column.name) * column.images;
    if (column.images == 1 && images > 0 && table.has("step") && !table.at(row, "step").empty() &&
        count_of(table, row, "step") == images) {
      if (options.images_per_step > 1)
        table.fail(row, column.name,
                   fmt::format("found as many images as steps, {:g}, though a step has {:g}: the column counts steps",
                               images, options.images_per_step));
      log.images_are_steps = csv_place(table, row, column.name);
    }
    return images;
  }
  return count_of(table, row, steps) * images_of_step(csv_place(table, row, steps), options);
}

/// The column of FIDs: "fid", or the only one that has it in its name, as Weights & Biases exports it, or that of the
/// one scalar that TensorBoard exports to a file that has FID in its name.
std::string fid_column(const CsvTable& table) {
  if (table.has("fid")) return "fid";
  const std::string file = std::filesystem::path(table.file()).filename().string();
  if (table.has("Wall time") && table.has("Value") && (file.find("fid") != file.npos || file.find("FID") != file.npos))
    return "Value";
  std::vector<std::string> named;
  for (const std::string& name : table.names()) {
    const std::string lower = lower_case(name);
    // Its exports have the least and the largest value of each step beside the value.
    if (lower.find("fid") != lower.npos && !lower.starts_with("fid_") && !lower.ends_with("__min") &&
        !lower.ends_with("__max"))
      named.push_back(name);
  }
  if (named.size() == 1) return named[0];
  throw ConfigError(named.empty()
                        ? fmt::format("{}: line 1: expected a column \"fid\"", table.file())
                        : fmt::format("{}: line 1: expected a column \"fid\", found {}", table.file(), list_of(named)));
}

/// The column of steps, or "".
std::string step_column(const CsvTable& table) {
  for (const char* name : {"step", "_step", "Step", "global_step", "trainer/global_step", "iteration", "iter", "itr",
                           "steps", "iterations", "Iteration"})
    for (const std::string& column : table.names())
      if (column == name || column.ends_with(std::string(" - ") + name)) return column;  // "RUN - _step"
  return "";
}

QualityLog& log_of(std::vector<QualityLog>& logs, const std::string& run) {
  const auto found = std::find_if(logs.begin(), logs.end(), [&](const QualityLog& log) { return log.run == run; });
  if (found != logs.end()) return *found;
  logs.emplace_back().run = run;
  return logs.back();
}

void add_facts_of_runs(const QualityLogOptions& options, std::vector<QualityLog>& logs) {
  if (options.runs.empty()) return;
  const CsvTable table = CsvTable::load(options.runs);
  if (!table.has("run")) throw ConfigError(fmt::format("{}: line 1: expected a column \"run\"", table.file()));
  for (const CsvTable::Row& row : table.rows())
    for (QualityLog& log : logs)
      if (log.run == table.at(row, "run")) read_facts(table, row, log);
}

}  // namespace

std::string with_commas(std::string text) {
  const std::string first = text.substr(0, text.find('\n'));
  for (const char other : {'\t', ';'})
    if (first.find(',') == first.npos && first.find(other) != first.npos)
      for (char& c : text) c = c == ',' ? '.' : c == other ? ',' : c;
  return text;
}

std::vector<QualityLog> read_quality_csv(const std::filesystem::path& file, const QualityLogOptions& options) {
  const CsvTable table = CsvTable::parse(with_commas(read_file(file)), file.string());
  const bool has_images = std::any_of(kImagesColumns.begin(), kImagesColumns.end(),
                                      [&](const ImagesColumn& column) { return table.has(column.name); });
  const std::string fids = fid_column(table), steps = step_column(table);
  if (!has_images && steps.empty())
    throw ConfigError(
        fmt::format("{}: line 1: expected a column \"images\", \"kimg\", \"d_real_kimg\" or \"step\"", table.file()));
  std::vector<QualityLog> logs;
  for (const CsvTable::Row& row : table.rows()) {
    QualityLog& log = log_of(logs, table.has("run") ? table.at(row, "run") : file.stem().string());
    read_facts(table, row, log);
    if (table.at(row, fids).empty()) continue;
    const double fid = csv_number(table, row, fids);
    if (fids != "fid") set_fact(log, "reference", fids, csv_place(table, row, fids));
    add_point(log, {read_images(table, row, steps, options, log), fid});
  }
  std::erase_if(logs, [](const QualityLog& log) { return log.points.empty(); });
  if (logs.empty())
    throw ConfigError(fmt::format("{}: found no point, expected at least one FID after the first step", table.file()));
  add_facts_of_runs(options, logs);
  return logs;
}

}  // namespace ganymede::traces
