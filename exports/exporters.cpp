#include <fmt/format.h>

#include <charconv>

#include "common/errors.hpp"
#include "exports/exporter.hpp"

// One row for each exporter, in the order of the help. NAME in a row stands for the function NAME_exporter(), which has
// a file of its own.
// clang-format off
#define GANYMEDE_EXPORTERS(ROW) \
  ROW(focus) \
  ROW(csv) \
  ROW(perfetto) \
  ROW(skypilot) \
  ROW(kubernetes) \
  ROW(slurm) \
  ROW(mlflow)
// clang-format on

namespace ganymede::exports {

#define GANYMEDE_DECLARE(name) Exporter name##_exporter();
GANYMEDE_EXPORTERS(GANYMEDE_DECLARE)
#undef GANYMEDE_DECLARE

std::span<const Exporter> exporters() {
#define GANYMEDE_CALL(name) name##_exporter(),
  static const std::vector<Exporter> table = {GANYMEDE_EXPORTERS(GANYMEDE_CALL)};
#undef GANYMEDE_CALL
  return table;
}

ExportValues::ExportValues(std::span<const ExportOption> options) {
  for (const ExportOption& option : options) values_[option.name] = option.default_value;
}

int ExportValues::integer(const std::string& name) const { return std::stoi(values_.at(name)); }

std::optional<std::size_t> ExportValues::index(const std::string& name) const {
  const std::string& text = values_.at(name);
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

namespace {

/// "a, b or c"
std::string alternatives(std::span<const report::DocumentKind> kinds, auto&& text_of) {
  std::string out;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    out += (i == 0 ? "" : i + 1 == kinds.size() ? " or " : ", ") + std::string(text_of(kinds[i]));
  return out;
}

}  // namespace

std::string kinds_text(std::span<const report::DocumentKind> kinds) {
  return alternatives(kinds,
                      [](report::DocumentKind kind) { return fmt::format("a {}", report::facts_of(kind).name); });
}

std::string source_text(std::span<const report::DocumentKind> kinds) {
  std::vector<report::DocumentKind> written(kinds.begin(), kinds.end());
  const bool study = std::erase(written, report::DocumentKind::study) > 0;
  const bool service = std::erase(written, report::DocumentKind::service) > 0;
  if (written.empty()) return "a ganymede.study/1 file";
  return fmt::format("what {} wrote with --format json{}{}",
                     alternatives(written, [](report::DocumentKind kind) { return report::facts_of(kind).writer; }),
                     study ? ", or a ganymede.study/1 file" : "", service ? ", or a ganymede.service/1 file" : "");
}

void check_kind(const Exporter& exporter, const report::Document& document) {
  for (const report::DocumentKind kind : exporter.reads)
    if (kind == document.kind) return;
  throw ConfigError(fmt::format("{}: is a {}, expected {}{}{}", document.node.file(),
                                report::facts_of(document.kind).name, kinds_text(exporter.reads),
                                exporter.refusal.empty() ? "" : "; ", exporter.refusal));
}

}  // namespace ganymede::exports
