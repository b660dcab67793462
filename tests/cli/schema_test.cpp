// The schemas accept what the program reads and writes: each example, each file of the project, and results.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "common/file.hpp"
#include "common/json_value.hpp"
#include "documents/schemas.hpp"
#include "schema_faults.hpp"
#include "support/when.hpp"

namespace ganymede::cli {
namespace {
namespace fs = std::filesystem;

const fs::path kSourceFolder = GANYMEDE_SOURCE_DIR;

Json parse(const std::string& text) { return Json::parse(text, /*comments=*/true); }

/// The files of docs/schemas, and the documents that are described.
std::vector<std::string> formats() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kSourceFolder / "docs" / "schemas"))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  for (const documents::DescribedDocument& document : documents::described_documents())
    names.emplace_back(document.name);
  std::ranges::sort(names);
  return names;
}

TEST(Schema, EveryFileOfTheFolderAndEveryDescriptionIsOne) {
  std::string listed;
  for (const std::string& name : formats()) listed += (listed.empty() ? "" : ",") + name;
  EXPECT_THAT(run_program("schema --help").out, testing::HasSubstr("{" + listed + "}"));
}

TEST(Schema, TakesTheExamples) {
  for (const char* format : {"scenario", "study", "request", "platform", "cluster", "service"})
    EXPECT_EQ(faults(format, parse(run_program(std::string("example ") + format).out)), "") << format;
}

TEST(Schema, TakesTheFilesOfTheProject) {
  const auto all = [](const char* folder, const std::string& format) {
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(kSourceFolder / folder)) {
      if (entry.path().extension() != ".json") continue;
      ++files;
      EXPECT_EQ(faults(format, parse(content_of(entry.path()))), "") << entry.path();
    }
    EXPECT_GT(files, 0U) << folder;
  };
  all("platforms/catalog", "platform");
  all("traces/recorded", "step-trace");
  all("traces/layers", "layers");
  all("studies", "study");
  all("tests/fuzz/corpus/rehearsal", "rehearsal");
}

TEST(Schema, TakesWhatTheProgramWrites) {
  const Scratch scratch;
  const std::string scenario = scratch.write("s.json", run_program("example scenario").out);
  const std::string spot =
      " --set /platform/market=spot --set /policy/name=spot-first --set /platform/max_nodes=2 --set "
      "'/storage={\"dataset\":{\"class\":\"gp3\",\"size\":\"10GB\"},\"checkpoint\":\"s3\"}' --set "
      "/checkpoint/every=1h --set /deadline=12h --set '/billing={\"kubernetes\":true}'";
  for (const std::string& options : {std::string(), spot}) {
    const Outcome outcome = run_program("simulate " + scenario + options + " --format json");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(faults("result", Json::parse(outcome.out)), "") << options;
  }
  const std::string cluster = scratch.write("c.json", run_program("example cluster").out);
  EXPECT_EQ(faults("cluster-result", Json::parse(run_program("simulate " + cluster + " --format json").out)), "");
  const std::string plan = (scratch / "plan.json").string();
  const Outcome planned =
      run_program("plan --model dcgan-64 --images 5000000 --instance p3.2xlarge --max-gpus 1 --save " + plan);
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_EQ(faults("plan", Json::parse(read_file(plan))), "");
  const Outcome differences = run_program("diff " + plan + " " + plan + " --fail-on +1% --format json");
  EXPECT_EQ(faults("diff", Json::parse(differences.out)), "");
  const Outcome validated = run_program("validate stylegan2_ada_v100 --format json");
  EXPECT_EQ(faults("validation-result", Json::parse(validated.out)), "");
  const Outcome trace = run_program("import layers vae");
  EXPECT_EQ(faults("step-trace", Json::parse(trace.out)), "");
}

TEST(Schema, TakesWhatWhyWrites) {
  NOT_SANITIZED("asks for some twenty plans; the tests of plan ask for as many smaller ones there");
  const Scratch scratch;
  const std::string plan = (scratch / "plan.json").string();
  ASSERT_EQ(
      run_program("plan --model dcgan-64 --images 5000000 --instance p3.2xlarge --max-gpus 1 --save " + plan).code, 0);
  EXPECT_EQ(faults("why", Json::parse(run_program("why " + plan + " --format json").out)), "");
}

TEST(Schema, FindsMistakes) {
  Json scenario = parse(run_program("example scenario").out);
  const auto with = [&](const char* pointer, const Json& value) {
    Json changed = scenario;
    changed[JsonPointer(pointer)] = value;
    return faults("scenario", changed);
  };
  EXPECT_NE(with("/platfrom", Json::object()), "");
  EXPECT_NE(with("/platform/nodes", 0), "");
  EXPECT_NE(with("/platform/market", "sport"), "");
  EXPECT_NE(with("/workload/steps", 5), "");  // beside epochs
  EXPECT_NE(with("/seed", "one"), "");
  EXPECT_NE(with("/synchronization", Json::object()), "");  // no scheme
  Json request = parse(run_program("example request").out);
  request["search"]["certainty"] = 2;
  EXPECT_NE(faults("request", request), "");
}

// An editor loads one file only, so every reference in it must lead to the file itself.
TEST(Schema, StandsAlone) {
  EXPECT_GE(formats().size(), 7U);
  for (const std::string& format : formats()) {
    const std::string text = run_program("schema " + format).out;
    const Json schema = Json::parse(text);
    EXPECT_EQ(schema["title"].get<std::string>().substr(0, 10 + format.size()), "ganymede." + format + "/");
    EXPECT_FALSE(schema["description"].get<std::string>().empty()) << format;
    EXPECT_EQ(text.find("x-list"), std::string::npos) << format;
    const std::string reference = "\"$ref\": \"";
    for (std::size_t at = text.find(reference); at != std::string::npos; at = text.find(reference, at + 1)) {
      const std::size_t begin = at + reference.size();
      const std::string target = text.substr(begin, text.find('"', begin) - begin);
      ASSERT_TRUE(target.starts_with("#/definitions/")) << format << ": " << target;
      EXPECT_TRUE(schema.contains(JsonPointer(target.substr(1)))) << format << ": " << target;
    }
  }
}

TEST(Schema, TakesItsNamesFromTheListsOfTheProgram) {
  const auto listed = [](const std::string& topic) {
    Json names = Json::array();
    for (const Json& row : Json::parse(run_program("list " + topic + " --format json").out))
      names.push_back(row["name"]);
    return names;
  };
  for (const char* format : {"scenario", "study", "request"}) {
    const Json definitions = Json::parse(run_program(std::string("schema ") + format).out)["definitions"];
    EXPECT_EQ(definitions["policy"]["properties"]["name"]["enum"], listed("policies")) << format;
    EXPECT_EQ(definitions["synchronization"]["properties"]["mode"]["enum"], listed("modes")) << format;
    EXPECT_EQ(definitions["market"]["enum"], listed("markets")) << format;
  }
}

}  // namespace
}  // namespace ganymede::cli
