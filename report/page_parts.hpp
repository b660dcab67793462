#pragma once
// Inside the report's page: what page.cpp puts together.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/candidates.hpp"
#include "report/table.hpp"

namespace ganymede {

/// More are shown by a sample: a browser draws no more points than a person can tell apart.
inline constexpr std::size_t kMostCandidates = 3000;
/// Bars of a Gantt chart; of more, neighbours are drawn together.
inline constexpr std::size_t kMostSpans = 20'000;

/// What the sections are made from.
struct PageInput {
  const nlohmann::json& document;
  std::string kind;                         ///< "result", "sweep", "plan" or "validation"
  std::vector<ReportCandidate> candidates;  ///< those shown
  std::vector<std::size_t> pareto;          ///< of these
  std::size_t all_candidates = 0;
  std::vector<std::size_t> detailed;  ///< of these: whose bill and events are shown, the one to begin with first
};

/// `about` is HTML; each chart is a place that the page's script draws into, with a label for those who cannot see it.
struct Section {
  std::string id, title, about;
  std::vector<std::pair<std::string, std::string>> charts;  ///< name and label
  std::string tables;                                       ///< HTML
};

std::vector<Section> sections_of(const PageInput& page);
/// page_details.cpp: bill, timeline, steps.
void add_details(const PageInput& page, std::vector<Section>& sections);
/// page_provenance.cpp: sources, seeds, warnings.
void add_provenance(const PageInput& page, std::vector<Section>& sections);
/// page_studies.cpp: predicted against measured.
void add_validation(const PageInput& page, std::vector<Section>& sections);

/// A table that scrolls by itself when it is large; rows are numbered for the script.
std::string html_of(const Table& table, const std::string& caption, const std::string& id = "");

/// What the page's script draws, as JSON.
nlohmann::ordered_json page_data(const PageInput& page);

/// The rows of a result's `step_spans`, at most kMostSpans of them: of more, each track's neighbours are one, of the
/// kind that has most of its time. [worker, kind, name, start_s, seconds]; further names are added to `names`.
nlohmann::ordered_json capped_spans(const nlohmann::json& spans, std::vector<std::string>& names, std::size_t most);

}  // namespace ganymede
