#pragma once
// The sections of the report's page and the data that its script draws. page.cpp puts them together.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/candidates.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// The highest number of candidates on a page, because a person cannot tell more points apart. If there are more, the
/// page shows a sample.
inline constexpr std::size_t kMaxCandidates = 3000;
/// The highest number of bars in a Gantt chart. If there are more, neighbouring bars are drawn as one.
inline constexpr std::size_t kMaxSpans = 20'000;

/// What the sections are made from. Indices refer to `candidates`.
struct PageInput {
  const nlohmann::json& document;
  std::string kind;                         ///< "result", "sweep", "plan" or "validation"
  std::vector<ReportCandidate> candidates;  ///< those that the page shows
  std::vector<std::size_t> pareto;
  std::size_t all_candidates = 0;  ///< in the document, shown or not
  /// The candidates whose bill and events are shown. The first one is shown when the page opens.
  std::vector<std::size_t> detailed;
};

/// A section of the page. Each chart is a place that the script draws into, with a label for readers who cannot see it.
struct Section {
  std::string id, title;
  std::string about;                                        ///< HTML
  std::vector<std::pair<std::string, std::string>> charts;  ///< name and label
  std::string tables;                                       ///< HTML
};

/// The sections of every report, from summary to energy, in the order of the page.
std::vector<Section> sections_of(const PageInput& page);
/// Adds the sections of single runs: bill, timeline, steps.
void add_details(const PageInput& page, std::vector<Section>& sections);
/// Adds the sections on sources, seeds and warnings.
void add_provenance(const PageInput& page, std::vector<Section>& sections);
/// Adds the section that compares predictions with measurements, if the document is a validation.
void add_validation(const PageInput& page, std::vector<Section>& sections);

/// Returns the table as HTML. A long table scrolls inside the page; rows have numbers, which the script uses.
std::string html_of(const Table& table, const std::string& caption, const std::string& id = "");

/// What the page's script draws, as JSON.
nlohmann::ordered_json page_data(const PageInput& page);

/// Returns the rows [worker, kind, name, start_s, seconds] of a result's `step_spans` if they are at most `max_rows`.
/// Otherwise neighbours on a track become one row of the kind that has most of their time, with a name that is added to
/// `names`.
nlohmann::ordered_json capped_spans(const nlohmann::json& spans, std::vector<std::string>& names, std::size_t max_rows);

}  // namespace ganymede::report
