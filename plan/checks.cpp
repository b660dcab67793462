#include "plan/checks.hpp"

#include <algorithm>
#include <cmath>

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/units.hpp"

namespace ganymede::plan {

std::optional<sim::Evaluation> read_checks(const JsonNode& request_node, const Request& request) {
  if (!request.common.contains("evaluation")) return {};
  const JsonNode node = request_node.child("evaluation");
  if (!node.is_object() || node.value().value("every", Json()) != "best") return {};
  const JsonNode every = node.child("every");
  if (!request.quality)
    every.fail("\"best\" needs an FID as the goal; with a number of images no evaluation ends the run");
  if (request.common.contains("synchronization"))
    every.fail("\"best\" is not known with \"synchronization\"; expected a number of images or steps");
  JsonObject in(node);
  sim::Evaluation checks{.every = sim::Evaluation::Every::images, .count = 1};
  in.required("every");
  if (const auto fixed = in.optional("fixed")) checks.fixed = fixed->as_quantity<Seconds>();
  if (const auto parallel = in.optional("parallel")) checks.parallel = parallel->as_quantity<Seconds>();
  in.finish();
  if (!(checks.pause(1).si > 0))
    every.fail(
        "\"best\" weighs the time of an evaluation: expected one above 0 at /evaluation/fixed or /evaluation/parallel "
        "(--quality-fixed, --quality-parallel)");
  return checks;
}

std::int64_t best_check_interval(double images, double train_s, double pause_s, double batch) {
  const double wished = images * std::sqrt(2 * pause_s / train_s);
  const double steps = std::round(std::min(wished, images) / batch);
  return std::llround(std::max(1.0, steps) * batch);
}

std::int64_t check_interval_of(const Request& request, const PlanCandidate& candidate) {
  return best_check_interval(images_of(request, candidate), candidate.bounds.time_s,
                             request.checks->pause(candidate.gpus()).si, batch_of(request, candidate));
}

}  // namespace ganymede::plan
