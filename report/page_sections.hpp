#pragma once
// The sections of the report's page and the data that its script draws. page.cpp puts them together.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/json_fwd.hpp"
#include "documents/cluster_result.hpp"
#include "documents/rehearsal.hpp"
#include "documents/result.hpp"
#include "documents/validation_result.hpp"
#include "report/candidates.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// The highest number of rows in a table that has a row for each candidate. The page's script lists all candidates from
/// the page's data; without it, those that none beats and the cheapest others are listed.
inline constexpr std::size_t kMaxListed = 100;
/// The highest number of bars in a Gantt chart. If there are more, neighbouring bars are drawn as one.
inline constexpr std::size_t kMaxSpans = 20'000;

/// The input of the sections. Indices refer to `candidates`.
struct PageInput {
  const Json& document;
  const std::vector<documents::Result>& runs;  ///< of a result or a sweep
  const documents::Plan* plan;                 ///< null unless the document is one
  std::string kind;                            ///< "result", "sweep", "plan", "validation", "cluster" or "rehearsal"
  std::vector<ReportCandidate> candidates;
  std::vector<std::size_t> pareto;
  /// The candidates whose bill and events are shown. The first one is shown when the page opens.
  std::vector<std::size_t> detailed;
  std::map<std::string, std::string> words;  ///< what schemes and policies are, by their names
  std::optional<documents::ClusterResult> cluster = {};
  std::optional<documents::Rehearsal> rehearsal = {};
  std::optional<documents::ValidationResult> validation = {};
};

/// A section of the page. Each chart is a place that the script draws into, with a label for readers who cannot see it.
struct Section {
  std::string id, title;
  std::string about;                                        ///< HTML
  std::vector<std::pair<std::string, std::string>> charts;  ///< name and label
  std::string tables;                                       ///< HTML
  bool tables_first = false;                                ///< the charts stand below the tables
};

/// The head of the page: the answer in a sentence that can be forwarded, badges that say how sure it is, and
/// the cards of a plan. HTML.
std::string answer_html(const PageInput& page);

/// A glossary of the page, to be opened: those of schemes, policies and predictions that it has. HTML.
std::string words_html(const PageInput& page);
/// The sections of every report, from summary to energy, in the order of the page.
std::vector<Section> sections_of(const PageInput& page);
/// The section of all candidates: time against cost, filters, the table.
Section comparison_of(const PageInput& page);
/// Adds how rates grow with the number of GPUs, if candidates differ in it.
void add_scaling(const PageInput& page, std::vector<Section>& sections);
/// By what the scaling is drawn: "gpu", or if there is one kind only "where", or if there is one place only "scheme".
std::string scaling_by(const std::vector<ReportCandidate>& candidates);
/// Adds time and cost over the seeds: of the policies of a sweep each seed, of one run their distribution.
void add_policies(const PageInput& page, std::vector<Section>& sections);
/// Indices of at most kMaxListed candidates: those that none beats, then the cheapest others. All of fewer, in order.
std::vector<std::size_t> listed(const PageInput& page);
/// The goals that the document was asked to keep to.
struct Goals {
  std::optional<double> deadline_s;
  std::optional<MicroUsd> budget;
  bool any() const { return deadline_s || budget; }
};
Goals goals_of(const PageInput& page);
/// The whole name: where, what, scheme and policy.
std::string name_of(const ReportCandidate& candidate);
/// A row of a bill's tree. The share is that of the total, from 0 to 1.
struct BillRow {
  int depth = 0;  ///< 0: the total, 1: a provider, 2: a pool, 3: an item, 4: what an item went into
  std::string name, quantity, unit, price, usd;
  double share = 0;
};
/// The run's bill as a tree of which each level's rows sum to the one above.
std::vector<BillRow> bill_tree(const documents::Result& run);
/// The same as rows of HTML, and the events of a run as a table: without a script those of the first run that is shown
/// in detail, with one those of the run that the reader chooses.
std::string bill_rows(const documents::Result& run);
Table events_of(const documents::Result& run);
/// Adds FID against dollars, if the document is a plan with an FID as its goal.
void add_quality(const PageInput& page, std::vector<Section>& sections);
/// Adds the sections of single runs: bill, timeline, steps.
void add_details(const PageInput& page, std::vector<Section>& sections);
/// Adds the sections on sources, seeds and warnings.
void add_provenance(const PageInput& page, std::vector<Section>& sections);
/// The sections of a rehearsed life.
std::vector<Section> rehearsal_sections(const documents::Rehearsal& rehearsal);
/// The sections of a cluster's result.
std::vector<Section> cluster_sections(const documents::ClusterResult& result);
/// Adds the section that compares predictions with measurements, if the document is a validation.
void add_validation(const PageInput& page, std::vector<Section>& sections);

/// Returns the table as HTML. A long table scrolls inside the page; rows have numbers, which the script uses.
std::string html_of(const Table& table, const std::string& caption, const std::string& id = "");

/// The key to the colours of a picture, as HTML that takes as many lines as a narrow window needs.
std::string key_html(const std::vector<std::pair<std::string, std::string>>& names_and_colors);

/// The data that the page's script draws, as JSON.
OrderedJson page_data(const PageInput& page);

/// Returns rows [worker, kind, name, start_s, seconds] of spans, all if they are at most `max_rows`. Otherwise
/// neighbours on a track become one row of the kind that has most of their time, with a name that is added to `names`.
OrderedJson capped_spans(const documents::StepSpans& spans, std::vector<std::string>& names, std::size_t max_rows);

}  // namespace ganymede::report
