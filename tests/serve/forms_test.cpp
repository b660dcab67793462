// Forms can ask for what the page offers, but for no other file and no program.

#include "serve/forms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "platforms/catalog.hpp"
#include "serve/job_answers.hpp"
#include "traces/recorded.hpp"

namespace ganymede::serve {
namespace {

using testing::HasSubstr;
Json compare() {
  return Json::parse(R"({
    "kind": "compare",
    "workload": { "trace": "recorded:mlp-gan-cpu", "batch_per_gpu": 64,
                  "dataset": { "name": "mnist", "images": 60000, "bytes_per_image": 784 }, "epochs": 1 },
    "platforms": [ { "catalog": "aws", "region": "us-east-1", "gpu": "V100", "market": "on-demand" } ],
    "gpus": [1, 2], "schemes": ["ring"], "policies": ["fixed"], "seeds": { "first": 1, "count": 2 } })");
}

Json plan() {
  return Json::parse(R"({
    "kind": "plan", "workload": { "trace": "layers:stylegan2", "batch_per_gpu": 4, "images": 1000 },
    "objective": "time", "deadline": "60h", "budget": "500USD", "catalogs": ["aws"], "gpus": ["V100"],
    "markets": ["spot"], "max_gpus": 4, "seed": 7 })");
}

Form read(const Json& form, const Checkpoints& checkpoints = {}) {
  return read_form(JsonNode::parse(form.dump(), "form"), {checkpoints, {}});
}

/// Expects a ConfigError whose message contains all `parts`.
void expect_refused(const Json& form, const std::vector<std::string>& parts, const Checkpoints& checkpoints = {}) {
  try {
    read(form, checkpoints);
    ADD_FAILURE() << form.dump() << " was taken";
  } catch (const ConfigError& error) {
    for (const std::string& part : parts) EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

Json changed(Json form, const std::string& pointer, const Json& value) {
  form[JsonPointer(pointer)] = value;
  return form;
}

TEST(Forms, AComparisonBecomesAStudy) {
  const Form form = read(compare());
  EXPECT_EQ(form.kind, JobKind::compare);
  const Json study = Json::parse(form.input);
  EXPECT_EQ(study["schema"], "ganymede.study/1");
  EXPECT_EQ(study["workload"], compare()["workload"]);
  EXPECT_EQ(study["platforms"], compare()["platforms"]);
  EXPECT_EQ(study["gpus"], compare()["gpus"]);
  EXPECT_EQ(study["seeds"], compare()["seeds"]);
}

TEST(Forms, APlanBecomesARequest) {
  const Json request = Json::parse(read(plan()).input);
  EXPECT_EQ(request["schema"], "ganymede.request/1");
  EXPECT_EQ(request["objective"], "time");
  EXPECT_EQ(request["budget"], "500USD");
  EXPECT_EQ(request["search"], Json::parse(R"({"catalogs":["aws"],"gpus":["V100"],"markets":["spot"],"max_gpus":4})"));
  EXPECT_EQ(request["seed"], 7);
}

TEST(Forms, TracesAreThoseOfTheProgram) {
  for (const char* trace : {"/etc/passwd", "../../secret.json", "trace.json", "recorded:../mlp-gan-cpu",
                            "recorded:", "layers:/etc/passwd", "layers:stylegan2:fp16", ""})
    expect_refused(changed(compare(), "/workload/trace", trace), {"form: /workload/trace"});
  expect_refused(changed(compare(), "/workload/trace", {{"file", "x"}}), {"form: /workload/trace"});
  for (const WorkloadOption& option : workload_options()) read(changed(compare(), "/workload/trace", option.trace));
  EXPECT_GE(workload_options().size(), traces::recorded_names().size() + 1);
}

TEST(Forms, CatalogsAreThoseOfTheProgram) {
  for (const char* name : {"/etc/passwd", "lab.json", "../aws", "./aws", "aws.json", ""}) {
    expect_refused(changed(compare(), "/platforms/0/catalog", name), {"form: /platforms/0/catalog"});
    expect_refused(changed(plan(), "/catalogs/0", name), {"form: /catalogs/0"});
  }
  // Another provider has no such region or instance, but its catalog is known.
  for (const std::string& name : platforms::provider_names()) try {
      read(changed(compare(), "/platforms/0/catalog", name));
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), testing::Not(HasSubstr("/platforms/0/catalog")));
    }
}

TEST(Forms, PoliciesAreNoProgramsAndNeedNoFiles) {
  for (const Json& policy :
       {Json("external"), Json("q-learning"), Json("fixd"), Json{{"name", "external"}, {"command", {"true"}}},
        Json{{"name", "fixed"}}, Json{{"name", "q-learning"}, {"table", "/etc/passwd"}}}) {
    expect_refused(changed(compare(), "/policies/0", policy), {"form: /policies/0"});
    expect_refused(changed(plan(), "/policies", Json::array({policy})), {"form: /policies/0"});
  }
  for (const std::string& name : policy_options()) {
    EXPECT_NE(name, "external");
    EXPECT_NE(name, "q-learning");
    read(changed(compare(), "/policies/0", name));
  }
}

TEST(Forms, MembersThatNameFilesAreUnknown) {
  for (const char* pointer :
       {"/platforms/0/overlay", "/platforms/0/capacity", "/platforms/0/prices", "/platforms/0/carbon",
        "/workload/quality", "/policy", "/storage", "/faults", "/synchronization", "/provisioning", "/schema",
        "/fidelity", "/workload/dataset/file", "/seeds/file"})
    expect_refused(changed(compare(), pointer, "/etc/passwd"), {std::string("form: ") + pointer, "unknown key"});
  for (const char* pointer : {"/search", "/billing", "/start", "/storage", "/workload/quality", "/workload/model"})
    expect_refused(changed(plan(), pointer, "/etc/passwd"), {std::string("form: ") + pointer, "unknown key"});
}

TEST(Forms, TypesAreChecked) {
  expect_refused(changed(compare(), "/platforms/0/region", {{"a", 1}}), {"/platforms/0/region"});
  expect_refused(changed(compare(), "/gpus/0", "1"), {"/gpus/0"});
  expect_refused(changed(compare(), "/gpus/0", 0), {"/gpus/0"});
  expect_refused(changed(compare(), "/gpus", Json::array()), {"/gpus", "at least one"});
  expect_refused(changed(compare(), "/gpus", Json(std::vector<int>(1000, 1))), {"/gpus", "at most"});
  expect_refused(changed(compare(), "/platforms", Json::array()), {"/platforms"});
  expect_refused(changed(compare(), "/schemes/0", "rign"), {"/schemes/0", "ring"});
  expect_refused(changed(compare(), "/seeds/count", 1'000'000), {"/seeds/count"});
  expect_refused(changed(compare(), "/deadline", 60), {"/deadline"});
  expect_refused(changed(compare(), "/workload/images", 10), {"/workload/images", "one target"});
  expect_refused(changed(plan(), "/workload/steps", 10), {"/workload/steps"});
  expect_refused(changed(compare(), "/kind", "simulate"), {"form: /kind"});
  expect_refused(Json::array(), {"form: /"});
}

TEST(Forms, GoalsAreCheckedAtTheirFields) {
  expect_refused(changed(plan(), "/deadline", "60"), {"write \"60h\" or \"60min\""});  // not a duration such as 5us
  expect_refused(changed(compare(), "/checkpoint", "10"), {"write \"10min\" or \"10h\""});
  for (const char* deadline : {"60", "-1h", "0s", "soon"}) {
    expect_refused(changed(compare(), "/deadline", deadline), {"form: /deadline: "});
    expect_refused(changed(plan(), "/deadline", deadline), {"form: /deadline: "});
  }
  expect_refused(changed(plan(), "/deadline", "2020-01-01T00:00:00Z"), {"form: /deadline: ", "past"});
  expect_refused(changed(plan(), "/deadline", "2999-01-01T00:00"), {"form: /deadline: ", "zone"});
  read(changed(plan(), "/deadline", "2999-01-01T00:00:00Z"));
  for (const char* budget : {"5 apples", "-1USD", "0USD", "100"})
    expect_refused(changed(compare(), "/budget", budget), {"form: /budget: "});
  expect_refused(changed(compare(), "/checkpoint", "often"), {"form: /checkpoint: "});
  read(changed(compare(), "/checkpoint", "daly"));
}

TEST(Forms, PlatformsAreLookedUpInTheirCatalog) {
  expect_refused(changed(compare(), "/platforms/0/region", "us-esat-1"), {"form: /platforms/0/region", "us-east-1"});
  expect_refused(changed(compare(), "/platforms/0/gpu", "V101"), {"form: /platforms/0/gpu", "V100"});
  expect_refused(changed(compare(), "/platforms/0/market", "sopt"), {"form: /platforms/0/market", "spot"});
  Json instance = compare();
  instance["platforms"][0] = {{"catalog", "aws"}, {"region", "us-east-1"}, {"instance", "p3.3xlarge"}};
  expect_refused(instance, {"form: /platforms/0/instance", "p3.2xlarge"});
}

TEST(Forms, AMeasuredStepStandsInPlaceOfTheTrace) {
  Json form = changed(plan(), "/workload/measured", {{"step", "0.11s"}, {"batch", 16}, {"gpu", "RTX3090"}});
  expect_refused(form, {"form: /workload/measured/batch", "16"});  // batch_per_gpu is 4
  form["workload"]["batch_per_gpu"] = 16;
  const Json workload = Json::parse(read(form).input)["workload"];
  EXPECT_EQ(workload["measured"], form["workload"]["measured"]);
  EXPECT_EQ(workload["batch_per_gpu"], 16);
  expect_refused(changed(form, "/workload/measured/gpu", "RTX9999"), {"form: /workload/measured/gpu"});
  expect_refused(changed(form, "/workload/measured/step", "0s"), {"form: /workload/measured/step"});
  // A growing model has steps of several lengths.
  expect_refused(changed(form, "/workload/trace", "recorded:progressive-gan-cpu"), {"form: /workload/measured"});
}

TEST(Forms, ATrainingIsRecordedPredictedAndRun) {
  const Json form = {{"kind", "train"}, {"model", "mlp-gan"}, {"batch", 8}, {"steps", 50}, {"seed", 3}};
  const auto commands = commands_of(JobKind::train, read(form).input, {}, 2);
  ASSERT_EQ(commands.size(), 3U);
  EXPECT_THAT(commands[0].arguments, testing::IsSupersetOf({"train", "--trace", "step-trace.json", "mlp-gan"}));
  EXPECT_THAT(commands[1].arguments, testing::IsSupersetOf({"plan", "step-trace.json", "400"}));  // 50 x 8 images
  EXPECT_THAT(commands[2].arguments, testing::IsSupersetOf({"train", "50", "--checkpoint", "--samples-every", "5"}));
  EXPECT_TRUE(commands[2].progress);
  EXPECT_EQ(commands[2].without, "");
  for (const char* model : {"../mlp-gan", "mlp", ""}) expect_refused(changed(form, "/model", model), {"form: /model"});
  expect_refused(changed(form, "/steps", 0), {"form: /steps"});
  expect_refused(changed(form, "/dataset", "/etc"), {"form: /dataset", "unknown key"});
  expect_refused(changed(form, "/max_gpus", 10'000), {"form: /max_gpus"});
}

TEST(Forms, CheckpointsOfOneProviderGoToItsObjectStore) {
  const Json study = Json::parse(read(changed(compare(), "/checkpoint", "10min")).input);
  EXPECT_EQ(study["storage"]["checkpoint"], "s3");
  EXPECT_EQ(study["checkpoint"]["every"], "10min");
  Json two = changed(compare(), "/platforms/1", {{"catalog", "gcp"}, {"region", "us-central1"}, {"gpu", "V100"}});
  read(two);
  expect_refused(changed(two, "/checkpoint", "10min"), {"form: /checkpoint", "one provider"});
}

TEST(Forms, CheckpointsToGenerateFromAreThoseOfTheServer) {
  const Checkpoints known = {{"run", "/somewhere/run"}};
  const Json form = {{"kind", "generate"}, {"checkpoint", "run"}, {"count", 4}, {"seed", 1}};
  const Form read_one = read(form, known);
  const auto arguments = commands_of(JobKind::generate, read_one.input, known, 1).front().arguments;
  EXPECT_THAT(arguments, testing::Contains("/somewhere/run"));
  for (const char* name : {"/somewhere/run", "../run", "run/", "rum", ""})
    expect_refused(changed(form, "/checkpoint", name), {"form: /checkpoint"}, known);
  expect_refused(form, {"--checkpoint"});
  expect_refused(changed(form, "/count", 10'001), {"/count"}, known);
  expect_refused(changed(form, "/output", "/tmp/x"), {"/output", "unknown key"}, known);
  // A checkpoint that no longer exists.
  EXPECT_THROW(commands_of(JobKind::generate, read_one.input, {{"other", "/x"}}, 1), ConfigError);
}

}  // namespace
}  // namespace ganymede::serve
