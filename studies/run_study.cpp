#include "studies/run_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/process.hpp"
#include "common/storage.hpp"
#include "documents/result.hpp"
#include "studies/sweep_rows.hpp"

namespace ganymede::studies {
namespace {

/// Reads one line and returns the scenario's hash and the run. Throws ConfigError or the JSON library's exception if it
/// is not a complete result.
std::pair<std::string, FinishedRun> read_journal_row(const std::string& line, const std::string& where) {
  const JsonNode row = JsonNode::parse(line, where);  // refuses deep nesting
  JsonObject members(row);
  check_schema(members, documents::kResultSchema);
  (void)documents::read_result(row);
  const auto run = OrderedJson::parse(line);
  return {run.at("provenance").at("scenario_hash").get<std::string>(), {line, facts_of(run)}};
}

/// True if a sweep has written this text. To any other file no row may be added, and it may not be removed.
bool is_journal(std::string_view text) {
  constexpr std::string_view kBefore{"\0\r\n", 3};  // a loss of power leaves zeros
  const std::string_view first = text.substr(std::min(text.find_first_not_of(kBefore), text.size()));
  return first.starts_with(kResultBegin) || kResultBegin.starts_with(first);
}

/// The JSON library's message without its bracketed code.
std::string message_of(std::string_view what) {
  const std::size_t end = what.starts_with('[') ? what.find("] ") : std::string_view::npos;
  return std::string(end == std::string_view::npos ? what : what.substr(end + 2));
}

/// The message on a row, whose one line is that of the journal: "x.partial: line 2: line 1, column 3" names two.
std::string at_row(std::string message, const std::string& where) {
  constexpr std::string_view kLine = ": line 1";
  if (message.starts_with(where) && std::string_view(message).substr(where.size()).starts_with(kLine))
    message.erase(where.size(), kLine.size());
  return message;
}

}  // namespace

std::map<std::string, FinishedRun> read_journal(const std::filesystem::path& journal, const TellOfJournal& tell) {
  std::map<std::string, FinishedRun> known;
  const auto status = std::filesystem::symlink_status(journal);
  if (journal.empty() || !std::filesystem::exists(status)) return known;
  if (!std::filesystem::is_regular_file(status))
    throw ConfigError(journal.string() + ": is no regular file, expected the journal of this sweep");
  const std::string text = read_file(journal);
  if (!is_journal(text))
    throw ConfigError(
        fmt::format("{}: found a file that no sweep has written, expected the journal of this one; move "
                    "it, or give another --output",
                    journal.string()));
  if (tell) tell("going on from " + journal.string());
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = fmt::format("{}: line {}", journal.string(), ++number);
    if (lines.eof() && Json::parse_or_null(line).is_null()) break;  // the last line was cut short
    std::string wrong;
    try {
      auto [hash, run] = read_journal_row(line, where);
      known.insert_or_assign(hash, std::move(run));
    } catch (const ConfigError& error) {
      wrong = at_row(error.what(), where);
    } catch (const JsonError& error) {
      wrong = where + ": " + message_of(error.what());
    }
    if (!wrong.empty() && tell) tell(wrong + "; this run is simulated again");
  }
  return known;
}

void remove_journal(const std::filesystem::path& journal) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(journal, unknown))) return;
  std::array<char, 4096> head{};
  std::ifstream in(journal, std::ios::binary);
  in.read(head.data(), head.size());
  const std::string_view read(head.data(), static_cast<std::size_t>(in.gcount()));
  // What cannot be read stays, and zeros behind which anything may stand.
  const bool is_known = in.is_open() && !in.bad() && (in.eof() || read.find(kResultBegin) != read.npos);
  if (is_known && is_journal(read)) storage::remove(journal.c_str());
}

namespace {

/// The runs of a study: which are done, with their results, and which are still to be simulated.
struct StudyProgress {
  std::vector<std::optional<FinishedRun>> results;  ///< one for each run; none: not done
  std::vector<std::size_t> pending;                 ///< indices of the runs that the journal did not have
  std::vector<ChildOutcome> failures;               ///< one for each pending run; `ok` unless it has no result
};

/// Takes the results that the journal has; all other runs are pending.
StudyProgress resume(const Study& study, const std::map<std::string, FinishedRun>& known) {
  StudyProgress progress;
  progress.results.resize(study.runs.size());
  for (std::size_t i = 0; i < study.runs.size(); ++i) {
    const auto earlier = known.empty() ? known.end() : known.find(study.runs[i].scenario().hash);
    if (earlier == known.end())
      progress.pending.push_back(i);
    else
      progress.results[i] = earlier->second;
  }
  progress.failures.resize(progress.pending.size());
  return progress;
}

/// Cuts off what an interruption has left of a row at the journal's end, to which the next row would be added. A whole
/// row that lacks its end gets it.
void end_with_row(const std::filesystem::path& journal) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(journal, unknown)) return;
  const std::string text = read_file(journal);
  const std::size_t rows = text.rfind('\n') + 1;  // none: 0
  if (rows == text.size()) return;
  if (Json::parse_or_null(text.substr(rows)).is_null())
    std::filesystem::resize_file(journal, rows);
  else
    std::ofstream(journal, std::ios::app) << "\n";
}

/// Simulates the pending runs and appends each result to the journal as it comes.
void simulate_pending(const Study& study, int jobs, const std::function<void(std::size_t)>& report_done,
                      const std::filesystem::path& journal, StudyProgress& progress) {
  std::ofstream kept;
  if (!journal.empty()) {
    end_with_row(journal);
    kept.open(journal, std::ios::app);
    if (!kept) throw ConfigError(fmt::format("{}: cannot be written: {}", journal.string(), std::strerror(errno)));
  }
  StudySimulator simulator(study);
  run_children(
      progress.pending.size(), jobs, [&](std::size_t i) { return simulator.row(progress.pending[i]); },
      [&](std::size_t done) {
        if (report_done) report_done(done + study.runs.size() - progress.pending.size());
      },
      simulator.use(),
      [&](std::size_t i, ChildOutcome& outcome) {
        if (outcome.kind != ChildOutcome::Kind::ok) {
          progress.failures[i] = outcome;
          return;
        }
        FinishedRun run = read_row(outcome.text);
        outcome.text.clear();
        if (kept.is_open() && !(kept << run.line + "\n" << std::flush))
          throw std::runtime_error(fmt::format("{}: cannot be written: {}", journal.string(), std::strerror(errno)));
        progress.results[progress.pending[i]] = std::move(run);
      });
}

/// The rows of the runs that have no result; counts them in `outcome`. Throws ConfigError if a run's input is wrong,
/// and BudgetExceeded if one would take too much.
std::vector<std::string> failed_rows(const Study& study, const StudyProgress& progress, StudyOutcome& outcome) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < progress.failures.size(); ++i) {
    const ChildOutcome& failure = progress.failures[i];
    const StudyRun& run = study.runs[progress.pending[i]];
    if (failure.kind == ChildOutcome::Kind::ok) continue;
    if (failure.kind == ChildOutcome::Kind::config_error || failure.kind == ChildOutcome::Kind::budget_exceeded)
      rethrow(failure, run.label() + ": ");
    ++(failure.kind == ChildOutcome::Kind::infeasible ? outcome.endless : outcome.failed);
    if (outcome.first_reason.empty()) outcome.first_reason = run.label() + ": " + failure.text;
    rows.push_back(failed_row(run, failure));
  }
  return rows;
}

/// The `ganymede.sweep/1` of the runs whose indices are in `which`.
std::string sweep_json(const Study& study, const std::vector<FinishedRun>& runs, const std::vector<std::size_t>& which,
                       const std::vector<std::string>& failed, const Summary& summary) {
  std::string out;
  std::size_t size = 65536;
  for (const std::size_t i : which) size += runs[i].line.size() + 8;
  out.reserve(size);
  const ContentSink sink = [&out](std::string_view piece) { out.append(piece); };
  SweepWriter writer(sink, study.name);
  for (const std::size_t i : which) writer.add_result(runs[i].line);
  for (const std::string& row : failed) writer.add_failed(row);
  writer.finish(summary);
  return out;
}

}  // namespace

void require_some_result(const StudyOutcome& outcome, std::size_t runs) {
  if (outcome.failed + outcome.endless < runs) return;
  if (outcome.failed > 0) throw Failure("every run failed; the first: " + outcome.first_reason);
  throw Infeasible("no run ever finishes; the first: " + outcome.first_reason);
}

void require_no_failure(const StudyOutcome& outcome, std::size_t runs) {
  if (outcome.failed > 0)
    throw Failure(fmt::format("{} of {} runs failed; the first: {}", outcome.failed, runs, outcome.first_reason));
}

StudyOutcome run_study(const Study& study, int jobs, const std::function<void(std::size_t)>& progress,
                       const std::filesystem::path& journal, const TellOfJournal& tell) {
  StudyProgress state = resume(study, read_journal(journal, tell));
  simulate_pending(study, jobs, progress, journal, state);
  StudyOutcome outcome;
  const auto failed = failed_rows(study, state, outcome);
  std::vector<FinishedRun> finished;
  std::vector<RunFacts> facts;
  std::vector<std::size_t> all;
  for (auto& run : state.results)
    if (run) {
      all.push_back(finished.size());
      facts.push_back(run->facts);
      finished.push_back(std::move(*run));
    }
  const Summary summary = summarize(facts);
  outcome.json = sweep_json(study, finished, all, failed, summary);
  const bool grouped = summary.groups.size() < finished.size() || !summary.rankings.empty();
  outcome.brief = sweep_json(study, finished, grouped ? summary.firsts : all, failed, summary);
  return outcome;
}

}  // namespace ganymede::studies
