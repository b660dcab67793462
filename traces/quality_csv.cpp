// Points of FID as CSV, in the columns of docs/formats.md.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "common/csv.hpp"
#include "common/errors.hpp"
#include "traces/quality_log.hpp"

namespace ganymede::traces {
namespace {

constexpr std::array<const char*, 6> kFactColumns = {"dataset", "backbone", "conditioning", "loss", "diffaug", "ada"};

struct ImagesColumn {
  const char* name;
  double images;  ///< of one unit
};
constexpr std::array<ImagesColumn, 3> kImagesColumns = {{{"images", 1}, {"kimg", 1e3}, {"d_real_kimg", 1e3}}};

std::string csv_place(const CsvTable& table, const CsvTable::Row& row, const char* column) {
  return fmt::format("{}: line {}: {}", table.file(), row.line, column);
}

double csv_number(const CsvTable& table, const CsvTable::Row& row, const char* column) {
  return positive_number(table.at(row, column), csv_place(table, row, column), "");
}

/// Images or steps, of which a training begins with none.
double count_of(const CsvTable& table, const CsvTable::Row& row, const char* column) {
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
double read_images(const CsvTable& table, const CsvTable::Row& row, const QualityLogOptions& options, QualityLog& log) {
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
  return count_of(table, row, "step") * images_of_step(csv_place(table, row, "step"), options);
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

std::vector<QualityLog> read_quality_csv(const std::filesystem::path& file, const QualityLogOptions& options) {
  const CsvTable table = CsvTable::load(file);
  const bool has_images = std::any_of(kImagesColumns.begin(), kImagesColumns.end(),
                                      [&](const ImagesColumn& column) { return table.has(column.name); });
  if (!table.has("fid")) throw ConfigError(fmt::format("{}: line 1: expected a column \"fid\"", table.file()));
  if (!has_images && !table.has("step"))
    throw ConfigError(
        fmt::format("{}: line 1: expected a column \"images\", \"kimg\", \"d_real_kimg\" or \"step\"", table.file()));
  std::vector<QualityLog> logs;
  for (const CsvTable::Row& row : table.rows()) {
    QualityLog& log = log_of(logs, table.has("run") ? table.at(row, "run") : file.stem().string());
    read_facts(table, row, log);
    if (table.at(row, "fid").empty()) continue;
    const double fid = csv_number(table, row, "fid");
    add_point(log, {read_images(table, row, options, log), fid});
  }
  std::erase_if(logs, [](const QualityLog& log) { return log.points.empty(); });
  if (logs.empty())
    throw ConfigError(fmt::format("{}: found no point, expected at least one FID after the first step", table.file()));
  add_facts_of_runs(options, logs);
  return logs;
}

}  // namespace ganymede::traces
