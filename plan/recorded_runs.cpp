#include "plan/recorded_runs.hpp"

#include <fmt/format.h>

#include <fstream>

#include "common/errors.hpp"
#include "common/text.hpp"
#include "plan/run_log.hpp"

namespace ganymede::plan {
namespace {

bool is_run_log(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  std::getline(in, line);
  return line.find("ganymede.run-log/") != std::string::npos;
}

traces::QualityLog read_own_log(const std::string& file) {
  RunLogReader reader(file);
  reader.read();
  const RunLog& log = reader.log();
  if (log.fids.empty())
    throw ConfigError(
        fmt::format("{}: found no line with \"quality\"; `ganymede train --quality 256 --quality-every 1000 --metrics "
                    "FILE` writes them",
                    file));
  traces::QualityLog out;
  out.run = log.model.empty() ? file : log.model;
  add_facts_of_model(log.model, out);
  if (!log.reference.empty()) out.facts["reference"] = log.reference;
  out.batch = static_cast<double>(log.batch);
  for (const LoggedFid& point : log.fids)
    if (point.step > 0) traces::add_point(out, {static_cast<double>(point.step * log.batch), point.fid});
  if (out.points.empty()) throw ConfigError(fmt::format("{}: found no FID after step 0", file));
  return out;
}

/// Fills in and replaces what flags state. What a figure compares with must not be changed by a flag.
void complete(traces::QualityLog& log, const traces::QualityLog& given, const std::string& file) {
  for (const auto& [fact, value] : given.facts) {
    if (fact != "reference" && fact != "dataset") log.facts[fact] = value;
    const auto [at, added] = log.facts.try_emplace(fact, value);
    if (at->second != value)
      throw ConfigError(
          fmt::format("--{}: found \"{}\", but {} says \"{}\" for {}{}", fact, value, file, at->second, log.run,
                      fact == "reference" ? ": FIDs against different references cannot be compared" : ""));
  }
  if (log.batch == 0) log.batch = given.batch;
  if (log.images_are_steps.empty()) return;
  if (log.batch > 1)
    throw ConfigError(fmt::format(
        "{}: found as many images as steps, though the batch is {:g}: the column counts steps; leave it out "
        "and give --images-per-step",
        log.images_are_steps, log.batch));
  log.notes.push_back(
      fmt::format("{}: found as many images as steps, which is right for a batch of one alone", log.images_are_steps));
}

}  // namespace

void add_facts_of_model(const std::string& model, traces::QualityLog& facts) {
  const calibration::QualityKind kind = calibration::kind_of_model(model);
  for (std::size_t f = 0; f < calibration::kQualityFactors; ++f)
    if (!kind.levels.at(f).empty()) facts.facts.try_emplace(calibration::kQualityFactorNames.at(f), kind.levels.at(f));
}

calibration::QualityKind kind_of(const traces::QualityLog& facts) {
  calibration::QualityKind kind;
  const auto fact = [&](const char* name) {
    const auto found = facts.facts.find(name);
    return found == facts.facts.end() ? std::string() : found->second;
  };
  for (std::size_t f = 0; f < calibration::kQualityFactors; ++f)
    kind.levels.at(f) = fact(calibration::kQualityFactorNames.at(f));
  kind.levels[calibration::kDatasetFactor] = calibration::dataset_level(fact("dataset"), fact("reference"));
  kind.batch = facts.batch;
  return calibration::with_usual_case(kind);
}

RecordedRuns read_recorded_runs(const std::string& file, const traces::QualityLogOptions& options,
                                const traces::QualityLog& given) {
  std::vector<traces::QualityLog> logs;
  if (is_run_log(file))
    logs.push_back(read_own_log(file));
  else
    logs = traces::read_quality_logs(file, options);
  RecordedRuns out;
  for (traces::QualityLog& log : logs) {
    complete(log, given, file);
    calibration::RecordedRun& run = out.runs.emplace_back();
    run.name = log.run;
    run.kind = kind_of(log);
    for (const traces::QualityLog::Point& point : log.points) run.points.push_back({point.images, point.fid});
    out.notes.insert(out.notes.end(), log.notes.begin(), log.notes.end());
  }
  return out;
}

const calibration::RecordedRun& chosen_run(const std::vector<calibration::RecordedRun>& runs, const std::string& name,
                                           const std::string& file) {
  std::vector<std::string> names;
  for (const calibration::RecordedRun& run : runs) {
    if (run.name == name) return run;
    names.push_back(run.name);
  }
  if (name.empty() && runs.size() == 1) return runs[0];
  const auto close = nearest(name, names);
  throw ConfigError(fmt::format("{}: found {} runs{}, expected --run with the name of one{}", file, runs.size(),
                                name.empty() ? "" : fmt::format(", none of them \"{}\"", name),
                                close ? fmt::format("; did you mean \"{}\"?", *close) : ", such as " + names[0]));
}

}  // namespace ganymede::plan
