#include "documents/validation_result.hpp"

#include <algorithm>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
namespace {
/// The baseline of that kind among some.
auto* no_communication(const auto& baselines) {
  const auto found =
      std::find_if(baselines.begin(), baselines.end(), [](const auto& one) { return one.name == "no communication"; });
  return found == baselines.end() ? nullptr : &*found;
}
}  // namespace

const ErrorSummary::Baseline* ErrorSummary::without_communication() const { return no_communication(baselines); }
const ValidatedCell::Baseline* ValidatedCell::without_communication() const { return no_communication(baselines); }

void describe(Walk& walk, ErrorSummary::Baseline& baseline) {
  walk.member("name", baseline.name, kRequired);
  walk.member("cells", baseline.cells, kCount);
  walk.member("mean_error", baseline.mean_error, kAmount);
  walk.member("skill", baseline.skill, {.says = "1: the predictions are right; 0: no better than the baseline"});
  walk.member("beaten", baseline.beaten);
}

void describe(Walk& walk, ErrorSummary& summary) {
  walk.member("cells", summary.cells, {.says = "that are predicted", .low = 0, .required = true});
  if (!walk.takes(summary.cells > 0)) return;
  walk.member("mean_error", summary.mean_error, {.says = "|predicted / measured - 1|", .low = 0});
  walk.member("worst_error", summary.worst_error, kCount);
  walk.member("held_by_interval", summary.held_by_interval, kShare);
  walk.member("baselines", summary.baselines, {.says = "simpler predictions"});
}

void describe(Walk& walk, ValidatedCell::Baseline& baseline) {
  walk.member("name", baseline.name, kRequired);
  walk.member("value", baseline.value);
  walk.member("error", baseline.error, kRequired);
}

void describe(Walk& walk, ValidatedCell::Parts& parts) {
  walk.member("alone_s", parts.alone_s, {.says = "one GPU's step"});
  walk.member("collectives_s", parts.collectives_s, {.says = "that simulated collectives add to it"});
  walk.member("step_s", parts.step_s);
  walk.member("measured_s", parts.measured_s);
  walk.member("pause_s", parts.pause_s);
  walk.member("bytes", parts.bytes, {.says = "gradients of a step"});
  walk.member("links_half_width", parts.links_half_width);
}

void describe(Walk& walk, ValidatedCell::Replay& replay) {
  walk.member("value", replay.value);
  walk.member("interval", replay.interval);
  walk.member("holds", replay.holds);
}

void describe(Walk& walk, ValidatedCell& cell) {
  walk.member("series", cell.series);
  walk.member("what", cell.what);
  walk.member("unit", cell.unit);
  walk.member("role", cell.role, {.choices = {"fit", "predict", "shown", "none"}});
  walk.member_if_any("measured", cell.measured);
  walk.member_unless("tags", cell.tags, {});
  walk.member_if_any("gpus", cell.gpus, {.low = 1});
  walk.member_unless("alternative", cell.alternative, false, {.says = "another reading of a figure that has a cell"});
  walk.member_unless("quantity", cell.quantity, std::string("time"));
  walk.member_unless("because", cell.because, {}, {.says = "why nothing predicts it"});
  walk.member_if_any("simulated", cell.simulated);
  walk.member_unless("anchor", cell.anchor, {}, {.says = "the cell to which the prediction is in proportion"});
  walk.member_if_any("predicted", cell.predicted);
  if (walk.takes(cell.predicted.has_value())) {
    walk.member("interval_90", cell.interval_90);
    walk.member("error", cell.error, {.says = "predicted / measured - 1"});
    walk.member("interval_holds", cell.interval_holds);
    walk.member("baselines", cell.baselines);
  }
  walk.member_unless("evidence", cell.evidence, {}, {.says = "its class, of which `coverage` tells"});
  walk.member_unless("executor", cell.executor, {});
  walk.member_if_any("repeat", cell.repeat, {.says = "standard deviation of a published figure"});
  walk.member_if_any("parts", cell.parts);
  walk.member_if_any("replay", cell.replay, {.says = "what simulate says, with --replay"});
}

void describe(Walk& walk, ValidatedClaim::Value& value) {
  walk.member("run", value.run, kRequired);
  walk.member("value", value.value, kRequired);
}

void describe(Walk& walk, ValidatedClaim& claim) {
  walk.member("text", claim.text);
  walk.member("holds", claim.holds, kRequired);
  walk.member("expected", claim.expected, {.says = "whether the study expects that it holds"});
  walk.member("margin", claim.margin, {.says = "the least difference of two neighbours, relative to the larger"});
  walk.member("within_error", claim.within_error);
  walk.member("values", claim.values, {.says = "in falling order if the claim holds"});
}

void describe(Walk& walk, ValidatedStudy::Assumption& assumption) {
  walk.member("what", assumption.what);
  walk.member("source", assumption.source);
}

void describe(Walk& walk, ValidatedStudy::Fractions::Row& row) {
  walk.member("gpus", row.gpus, {.low = 1});
  walk.member("bytes", row.bytes, kCount);
  walk.member("compute_fraction", row.compute_fraction);
}

void describe(Walk& walk, ValidatedStudy::Fractions& table) {
  walk.member("title", table.title);
  walk.member("series", table.series);
  walk.member("rows", table.rows);
}

void describe(Walk& walk, ValidatedStudy::Promise& promise) {
  walk.member("cells", promise.cells, {.says = "their tag, or all"});
  walk.member("mean_error_at_most", promise.mean_error_at_most);
  walk.member("beats_baselines", promise.beats_baselines);
  walk.member("kept", promise.kept, kRequired);
  walk.member("measured", promise.measured);
}

void describe(Walk& walk, ValidatedStudy& study) {
  walk.member("name", study.name);
  walk.member("title", study.title, kRequired);
  walk.member("source", study.source);
  walk.member("assumptions", study.assumptions);
  walk.member("informed_choices", study.informed_choices,
              {.says = "choices made by people who had read the cells that are predicted"});
  walk.member("in_totals", study.in_totals, {.says = "false: constants were chosen with knowledge of the cells"});
  walk.member_unless("links", study.links, {}, {.says = "where those of a rehearsal come from"});
  walk.member("fitted", study.fitted, {.says = "sentences"});
  walk.member("cells", study.cells, kRequired);
  walk.member("claims", study.claims);
  walk.member("compute_fractions", study.compute_fractions);
  walk.member("summary", study.summary, {.says = "of times; alternative readings are left out"});
  if (walk.takes(!study.other_quantities.empty()))
    walk.object("other_quantities", [&] {
      for (const char* name : kOtherQuantities) {
        std::optional<ErrorSummary> summary;
        if (study.other_quantities.contains(name)) summary = study.other_quantities.at(name);
        walk.member_if_any(name, summary);
        if (walk.reads() && summary) study.other_quantities[name] = *summary;
      }
    });
  walk.member("promises", study.promises);
}

void describe_coverage(Walk& walk, ValidationResult::Coverage& coverage) {
  walk.member("cells", coverage.cells, kCount);
  walk.member("held", coverage.held, {.says = "share whose 90 % interval holds", .low = 0, .high = 1});
  walk.member("mean_half_width", coverage.mean_half_width, {.says = "of the intervals, over the prediction", .low = 0});
}

void describe(Walk& walk, ValidationResult::Replayed& replayed) {
  describe_coverage(walk, replayed.coverage);
  walk.member("off", replayed.off, {.says = "mean difference of the two predictions", .low = 0});
}

void describe(Walk& walk, ValidationResult::Evidence& row) {
  walk.member("evidence", row.evidence, kRequired);
  walk.member("sources", row.sources, {.says = "studies", .low = 0});
  describe_coverage(walk, row.coverage);
  walk.member_if_any("replay", row.replay, {.says = "what simulate says, with --replay"});
}

void describe(Walk& walk, ValidationResult::Log& log) {
  walk.member("name", log.name, {.says = "in bench/nccl_logs"});
  walk.member("from", log.from, {.says = "bytes", .low = 0});
  walk.member("to", log.to, {.says = "bytes; 0: the largest", .low = 0});
  walk.member("fitted", log.fitted, {.says = "latency and bandwidth are fitted to two sizes"});
}

void describe(Walk& walk, ValidationResult::LeftOut& row) {
  walk.member("constant", row.constant, kRequired);
  walk.member("study", row.study, {.says = "that is left out of the fit", .required = true});
  walk.member_if_any("rows", row.rows, kCount);
  walk.member_if_any("error", row.error, {.says = "of the fit to all; a recorded row has none", .low = 0});
  walk.member("left_out_error", row.left_out_error, kAmount);
  walk.member("without_it", row.without_it, {.says = "without the constant", .low = 0, .required = true});
  walk.member_if_any("deviation", row.deviation);
  walk.member_if_any("per_gigabyte_s", row.per_gigabyte_s);
  walk.member_unless("by", row.by, {}, {.says = "what measures a recorded error"});
  walk.member_if_any("log", row.log);
}

void describe(Walk& walk, ValidationResult::Rehearsed& kind) {
  walk.member("links", kind.links, kRequired);
  walk.member("rehearsals", kind.rehearsals, {.low = 1});
  walk.member("mean_error", kind.mean_error);
  walk.member("factor", kind.factor, {.says = "by which such links widen intervals", .low = 0});
}

void describe(Walk& walk, ValidationResult& result) {
  walk.constant("schema", kValidationSchema, kRequired);
  walk.member("studies", result.studies, kRequired);
  walk.member("summary", result.summary, kRequired);
  walk.member("coverage", result.coverage, {.says = "by class of evidence"});
  walk.member("leave_one_out", result.leave_one_out, {.says = "constants that were fitted without a study"});
  if (walk.takes(!result.rehearsed.empty()))
    walk.member("rehearsed", result.rehearsed, {.says = "rehearsals of one's own, by their links"});
}

std::string validated_study_text(const ValidatedStudy& study) { return written(described(study)).dump(); }
ValidatedStudy validated_study_in(const Json& value) {
  ValidatedStudy study;
  read(JsonNode::wrap(value, "study", {}), described(study), {.strict = false, .again = {}});
  return study;
}

OrderedJson validation_json(const ValidationResult& result) { return written(described(result)); }

ValidationResult read_validation_result(const JsonNode& node) {
  ValidationResult result;
  read(node, described(result), {.strict = false, .again = "validate again with --format json"});
  return result;
}
ValidationResult validation_in(const Json& value) {
  return read_validation_result(JsonNode::wrap(value, "validation", {}));
}

}  // namespace ganymede::documents
