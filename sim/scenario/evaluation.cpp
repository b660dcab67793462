#include "sim/scenario/evaluation.hpp"

#include <string>
#include <string_view>

#include "common/json.hpp"
#include "common/plain_text.hpp"
#include "common/units.hpp"
#include "common/written.hpp"

namespace ganymede::sim {

double count_of(std::string_view text, std::string_view unit) {
  if (!text.ends_with(unit)) return 0;
  text.remove_suffix(unit.size());
  while (text.ends_with(' ')) text.remove_suffix(1);
  constexpr double kMaxCount = 1e15;
  const auto count = static_cast<double>(parse_number<std::int64_t>(text).value_or(0));
  return count >= 1 && count <= kMaxCount ? count : 0;
}

namespace {

void read_every(const JsonNode& node, bool has_dataset, Evaluation& evaluation) {
  const std::string text = node.as_string();
  struct Unit {
    std::string_view name;
    Evaluation::Every every;
  };
  for (const Unit& unit : {Unit{"steps", Evaluation::Every::steps}, Unit{"step", Evaluation::Every::steps},
                           Unit{"images", Evaluation::Every::images}, Unit{"epochs", Evaluation::Every::epochs},
                           Unit{"epoch", Evaluation::Every::epochs}}) {
    if (!text.ends_with(unit.name)) continue;
    evaluation.every = unit.every;
    evaluation.count = count_of(text, unit.name);
    if (evaluation.count == 0)
      node.expected("a whole number from 1 before the unit, such as \"1000 steps\", \"200000 images\" or \"1epoch\"");
    if (unit.every == Evaluation::Every::epochs && !has_dataset)
      node.fail("epochs need \"dataset\" in \"workload\", to know how long one is");
    return;
  }
  evaluation.every = Evaluation::Every::interval;
  evaluation.interval = with_unit(node, {"min", "h"}).as_positive<Seconds>();
}

}  // namespace

Evaluation read_evaluation(const JsonNode& node, bool has_dataset) {
  JsonObject in(node);
  Evaluation evaluation;
  read_every(in.required("every"), has_dataset, evaluation);
  const auto fixed = in.optional("fixed");
  const auto parallel = in.optional("parallel");
  if (fixed) evaluation.fixed = fixed->as_quantity<Seconds>();
  if (parallel) evaluation.parallel = parallel->as_quantity<Seconds>();
  in.finish();
  if (!(evaluation.pause(1).si > 0)) node.expected("a time above 0 as \"fixed\", \"parallel\" or both");
  return evaluation;
}

}  // namespace ganymede::sim
