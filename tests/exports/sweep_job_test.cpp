// Jobs that simulate a study in shards: what Slurm and Kubernetes are told, whatever the study's name holds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "exports/launch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

namespace ganymede::exports {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class SweepJobs : public testing::Test {
 protected:
  /// The text that the exporter writes of a study of this name with these options.
  std::string written(const std::string& exporter, const std::map<std::string, std::string>& options,
                      const Json& changes = Json::object()) {
    Json study = {{"schema", "ganymede.study/1"}, {"name", "Spot, 2 zones"}, {"workload", {{"trace", "t.json"}}}};
    study.merge_patch(changes);
    const auto file = folder_.add("study.json", study.dump());
    const Exporter& of = *std::find_if(exporters().begin(), exporters().end(),
                                       [&](const Exporter& one) { return one.name == exporter; });
    ExportValues values(of.options);
    for (const auto& [name, value] : options) values.slot(name) = value;
    if (of.check != nullptr) of.check(values);
    const report::Document document = report::load_document(file, {report::DocumentKind::study});
    check_kind(of, document);
    return of.write(document, values, {.remark = [&](const std::string& text) { remark_ = text; }});
  }
  TemporaryFolder folder_;
  std::string remark_;
};

TEST_F(SweepJobs, SlurmGetsAnArrayOfShards) {
  const std::string script = written("slurm", {{"shards", "64"}, {"cpus", "4"}, {"time", "2:00:00"}});
  EXPECT_TRUE(script.starts_with("#!/bin/bash\n"));
  EXPECT_THAT(script, AllOf(HasSubstr("\n#SBATCH --job-name=spot-2-zones\n"), HasSubstr("\n#SBATCH --array=0-63\n"),
                            HasSubstr("\n#SBATCH --cpus-per-task=4\n"), HasSubstr("\n#SBATCH --time=2:00:00\n"),
                            HasSubstr("\n#SBATCH --signal=B:TERM@60\n"), HasSubstr(" --shard auto/64 --jobs 4 "),
                            HasSubstr(" -o 'spot-2-zones-shards'\n")));
  EXPECT_EQ(remark_, "");
  (void)written("slurm", {{"shards", "2000"}});
  EXPECT_THAT(remark_, HasSubstr("MaxArraySize"));
}

// A directive that comes from a name or an option would be a line of its own.
TEST_F(SweepJobs, SlurmGetsNoLineFromANameOrAnOption) {
  const std::string script =
      written("slurm", {{"folder", "a'; rm -rf $HOME #"}}, {{"name", "x\n#SBATCH --uid=0\ntouch y"}});
  EXPECT_THAT(script, AllOf(Not(HasSubstr("\n#SBATCH --uid")), Not(HasSubstr("\ntouch")),
                            HasSubstr("-o 'a'\\''; rm -rf $HOME #'\n")));
  for (const auto& [option, value] : {std::pair{"time", "1:00\n#SBATCH --uid=0"}, {"partition", "a b"}, {"time", "1h"}})
    EXPECT_THAT(message_of<ConfigError>([&] {
                  written("slurm", {{option, value}});
                }),
                HasSubstr(std::string("--") + option + ": found"));
  EXPECT_THAT(message_of<ConfigError>([&] { written("slurm", {{"name", "a b"}}); }), HasSubstr("--name"));
}

TEST_F(SweepJobs, KubernetesGetsAnIndexedJob) {
  const std::string manifests =
      written("kubernetes", {{"sweep", "yes"}, {"shards", "8"}, {"cpus", "2"}, {"image", "mine:1"}});
  const std::vector<YAML::Node> documents = YAML::LoadAll(manifests);
  ASSERT_EQ(documents.size(), 3U);
  EXPECT_EQ(documents[0]["spec"]["accessModes"][0].as<std::string>(), "ReadWriteMany");
  EXPECT_EQ(Json::parse(documents[1]["data"]["study.json"].as<std::string>())["name"], "Spot, 2 zones");
  const YAML::Node job = documents[2];
  EXPECT_EQ(job["kind"].as<std::string>(), "Job");
  EXPECT_EQ(job["spec"]["completionMode"].as<std::string>(), "Indexed");
  EXPECT_EQ(job["spec"]["completions"].as<int>(), 8);
  const YAML::Node pod = job["spec"]["template"]["spec"], container = pod["containers"][0];
  EXPECT_EQ(container["image"].as<std::string>(), "mine:1");
  EXPECT_EQ(container["command"].as<std::vector<std::string>>(),
            (std::vector<std::string>{"ganymede", "sweep", "/study/study.json", "--shard", "auto/8", "--jobs", "2",
                                      "-o", "/data/spot-2-zones"}));
  // Each volume that is mounted exists, and is one of the objects above.
  EXPECT_EQ(container["volumeMounts"].size(), pod["volumes"].size());
  EXPECT_EQ(pod["volumes"][0]["persistentVolumeClaim"]["claimName"].as<std::string>(),
            documents[0]["metadata"]["name"].as<std::string>());
  EXPECT_EQ(pod["volumes"][1]["configMap"]["name"].as<std::string>(),
            documents[1]["metadata"]["name"].as<std::string>());
}

TEST_F(SweepJobs, PodsMustHaveTheFilesOfAStudy) {
  folder_.add("t.json", "{}");
  EXPECT_THAT(message_of<ConfigError>([&] {
                written("kubernetes", {{"sweep", "yes"}});
              }),
              HasSubstr("/workload/trace: names the file t.json, which pods do not have"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                written("kubernetes", {{"sweep", "yes"}},
                        {{"workload", nullptr}, {"platforms", {{{"catalog", "aws"}}, {{"catalog", "t.json"}}}}});
              }),
              HasSubstr("/platforms/1/catalog: names the file t.json"));
  const std::string manifests = written("kubernetes", {{"sweep", "yes"}, {"study", "/studies/study.json"}});
  EXPECT_THAT(manifests, AllOf(HasSubstr("\"/studies/study.json\""), Not(HasSubstr("ConfigMap"))));
}

TEST_F(SweepJobs, KubernetesIsToldWhatItGets) {
  EXPECT_THAT(message_of<ConfigError>([&] { written("kubernetes", {}); }), HasSubstr("is a study; --sweep writes"));
}

}  // namespace
}  // namespace ganymede::exports
