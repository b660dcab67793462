// Readers of requests and plans, of studies with their journals and rows, and of the documents that reports read.

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/random.hpp"
#include "plan/learn.hpp"
#include "plan/outcome.hpp"
#include "plan/planner.hpp"
#include "plan/request.hpp"
#include "plan/run_log.hpp"
#include "report/documents.hpp"
#include "report/page.hpp"
#include "report/runs.hpp"
#include "studies/run_study.hpp"
#include "studies/shard_folder.hpp"
#include "studies/study.hpp"
#include "studies/sweep_rows.hpp"
#include "studies/task_file.hpp"
#include "target.hpp"

namespace ganymede::fuzz {
namespace {

void read_journal(std::string_view bytes) {
  std::size_t dropped = 0;
  (void)studies::read_journal(file_of(bytes), [&](const std::string&) { ++dropped; });
}

/// The rows without their checksums, which no change would find: those that hold are added.
void read_rows(std::string_view bytes) {
  studies::ShardedWork work;
  work.command = work.program = work.name = "some";
  work.parts = {{"part", "0123456789abcdef"}};
  work.seeds = {1, 2};
  std::string rows;
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    rows += fmt::format("{:016x}\t{}\n", fnv1a(line), line);
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
  }
  (void)studies::read_shard_file(
      file_of(rows), work, 1,
      [](const studies::ShardRow& row, std::uint64_t) {
        try {
          if (row.kind == studies::RowKind::result) (void)studies::read_row(row.text);
        } catch (const JsonError&) {  // the caller reports such a row
        }
      },
      [](const std::string&) {});
}

/// A folder whose `shards.json` holds the bytes.
void read_work(std::string_view bytes) {
  static const std::filesystem::path kFolder = [] {
    std::string name = std::filesystem::temp_directory_path() / "ganymede-fuzz-XXXXXX";
    expect(::mkdtemp(name.data()) != nullptr, "a temporary folder");
    return name;
  }();
  std::filesystem::remove(kFolder / "shards.json");
  std::filesystem::create_symlink(file_of(bytes), kFolder / "shards.json");
  (void)studies::read_work(kFolder);
}

/// Reads a log whose second half is written later, as `watch` does.
void read_log(std::string_view bytes) {
  plan::RunLogReader log(file_of(bytes.substr(0, bytes.size() / 2)));
  (void)log.read();
  (void)file_of(bytes);
  (void)log.read();
}

void read_document(std::string_view bytes) {
  using report::DocumentKind;
  const report::Document document = report::load_document(
      file_of(bytes),
      {DocumentKind::result, DocumentKind::sweep, DocumentKind::plan, DocumentKind::validation, DocumentKind::cluster});
  try {  // as report, simulate, sweep and `export csv` show it
    if (document.kind == DocumentKind::result)
      (void)(report::run_text(document.json()) + report::run_csv(document.json()));
    if (document.kind == DocumentKind::sweep)
      (void)(report::sweep_text(document.json()) + report::sweep_csv(document.json()));
    (void)report::report_page(document.json());
  } catch (const JsonError&) {         // cli/report.cpp answers both
  } catch (const std::logic_error&) {  // a text that is no number
  }
}

}  // namespace

std::vector<Target> plan_targets() {
  return {
      {"request", "plan/request.cpp plan/pick_trace.cpp",
       [](std::string_view bytes) {
         (void)plan::read_request(JsonNode::parse(bytes, "request.json"), "2026-11-25T00:00:00Z");
       },
       "request", 40},
      {"plan", "plan/read_plan.cpp",
       [](std::string_view bytes) { (void)plan::read_plan(JsonNode::parse(bytes, "plan.json")); }},
      {"run-log", "plan/run_log.cpp", read_log},
      {"study", "studies/study.cpp", [](std::string_view bytes) { (void)studies::load_study(file_of(bytes)); }, "study",
       10},
      {"task-file", "studies/task_file.cpp",
       [](std::string_view bytes) { (void)studies::read_task_file(file_of(bytes).string()); }},
      {"journal", "studies/run_study.cpp", read_journal},
      {"shard-rows", "common/row_file.cpp studies/shard_folder.cpp", read_rows},
      {"shards", "studies/shard_folder.cpp", read_work},
      {"outcome", "plan/outcome.cpp",
       [](std::string_view bytes) { plan::read_outcome(JsonNode::parse(bytes, "outcome"), 3); }},
      {"lesson", "plan/learn.cpp",
       [](std::string_view bytes) { (void)plan::read_lesson(JsonNode::parse(bytes, "lesson")); }},
      {"document", "report/documents.cpp report/page.cpp report/page_sections.cpp report/runs.cpp", read_document},
  };
}

}  // namespace ganymede::fuzz
