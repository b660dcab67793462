// The description of a rehearsed life.

#include "documents/rehearsal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::documents {
namespace {

TEST(RehearsalDocument, WhatIsWrittenIsReadAndWrittenAgainAsTheSameBytes) {
  Rehearsal life;
  life.scenario = "s.json", life.network = "paced", life.hosts = 4;
  life.scale = 0.5, life.steps_each = 10, life.took_s = 60;
  life.comparison = {{"time", "s", 110, 100, 0.1, 1}, {"lost", "GPU-s", 1, 0, std::nullopt, 0}};
  life.same_decisions = true;
  life.predicted_decisions = life.measured_decisions = {{0, {R"({"room spot":3})"}, true, false}};
  life.processes = {3, 1, 1, 2, 52, 9, 2};
  life.predicted.gpus = 3;
  life.predicted.launch.batch_per_gpu = 8, life.predicted.launch.global_batch = 24;
  life.measured = life.predicted;
  const std::string text = rehearsal_json(life).dump(2);
  EXPECT_EQ(rehearsal_json(read_rehearsal(JsonNode::parse(text, "life.json"))).dump(2), text);
  Json broken = Json::parse(text);
  broken["processes"].erase("steps_played");
  EXPECT_THROW((void)rehearsal_in(broken), ConfigError);
}

}  // namespace
}  // namespace ganymede::documents
