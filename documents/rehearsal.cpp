#include "documents/rehearsal.hpp"

#include "common/json.hpp"
#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
namespace {
const About kFigure = {.low = 0, .required = true};
}  // namespace

void describe(Walk& walk, Rehearsal::Figure& figure) {
  walk.member("what", figure.what, kRequired);
  walk.member("unit", figure.unit, {.required = true, .choices = {"s", "GPU-s", "USD"}});
  walk.member("predicted", figure.predicted, kFigure);
  walk.member("measured", figure.measured, kFigure);
  walk.member("off", figure.off,
              {.says = "(predicted - measured) / measured; null if nothing was measured", .required = true});
  walk.member("share", figure.share, {.says = "of the measured GPU-seconds", .low = 0, .required = true});
}

void describe(Walk& walk, Rehearsal::Decision& decision) {
  walk.member("at_s", decision.at_s, kFigure);
  walk.member("nodes", decision.nodes, {.says = "by pool", .required = true});
  walk.member("elastic", decision.elastic, kRequired);
  walk.member("pause", decision.pause, kRequired);
}

void describe(Walk& walk, Rehearsal::Processes& processes) {
  walk.member("nodes_started", processes.nodes_started, kFigure);
  walk.member("nodes_killed", processes.nodes_killed, kFigure);
  walk.member("notices_heard", processes.notices_heard, kCount);
  walk.member("trainings_started", processes.trainings_started, kFigure);
  walk.member("steps_played", processes.steps_played, kFigure);
  walk.member("checkpoints_written", processes.checkpoints_written, kFigure);
  walk.member("checkpoints_read", processes.checkpoints_read, kFigure);
}

void describe(Walk& walk, Rehearsal& rehearsal) {
  walk.constant("schema", kRehearsalSchema, kRequired);
  walk.member("scenario", rehearsal.scenario, {.says = "the file's name, without its folder", .required = true});
  walk.member("hosts", rehearsal.hosts, {.low = 2, .required = true});
  walk.member("network", rehearsal.network, {.required = true, .choices = {"namespaces", "paced"}});
  walk.member("scale", rehearsal.scale,
              {.says = "real seconds for one of the scenario", .low = 0, .above_low = true, .required = true});
  walk.member("steps_each", rehearsal.steps_each,
              {.says = "steps of the scenario for a played one", .low = 1, .required = true});
  walk.member("took_s", rehearsal.took_s, kFigure);
  walk.member("latest_s", rehearsal.latest_s,
              {.says = "real seconds by which something happened later than due", .low = 0});
  walk.member("comparison", rehearsal.comparison, kRequired);
  walk.object(
      "decisions",
      [&] {
        walk.member("same", rehearsal.same_decisions, kRequired);
        walk.member("predicted", rehearsal.predicted_decisions,
                    {.says = "those that differ from the one before", .required = true});
        walk.member("measured", rehearsal.measured_decisions, kRequired);
      },
      kRequired);
  walk.member("processes", rehearsal.processes, kRequired);
  walk.member("predicted", rehearsal.predicted, {.says = "a ganymede.result/1", .required = true});
  walk.member("measured", rehearsal.measured, kRequired);
}

OrderedJson rehearsal_json(const Rehearsal& rehearsal) { return written(described(rehearsal)); }

Rehearsal read_rehearsal(const JsonNode& node) {
  Rehearsal rehearsal;
  read(node, described(rehearsal), {.strict = false, .again = "rehearse again with --format json"});
  return rehearsal;
}
Rehearsal rehearsal_in(const Json& value) { return read_rehearsal(JsonNode::wrap(value, "rehearsal", {})); }

}  // namespace ganymede::documents
