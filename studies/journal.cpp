#include "studies/journal.hpp"

#include <fmt/format.h>

#include <sstream>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "documents/result.hpp"

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

/// The JSON library's message without its bracketed code.
std::string message_of(std::string_view what) {
  const std::size_t end = what.starts_with('[') ? what.find("] ") : std::string_view::npos;
  return std::string(end == std::string_view::npos ? what : what.substr(end + 2));
}

}  // namespace

std::map<std::string, FinishedRun> read_journal(const std::filesystem::path& journal,
                                                const ReportDropped& report_dropped) {
  std::map<std::string, FinishedRun> known;
  if (journal.empty() || !std::filesystem::exists(journal)) return known;
  const std::string text = read_file(journal);
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
      wrong = error.what();
    } catch (const JsonError& error) {
      wrong = where + ": " + message_of(error.what());
    }
    if (!wrong.empty() && report_dropped) report_dropped(wrong + "; this run is simulated again");
  }
  return known;
}

}  // namespace ganymede::studies
