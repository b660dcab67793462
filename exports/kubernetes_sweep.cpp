#include <fmt/format.h>

#include <filesystem>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "exports/kubernetes_pod.hpp"
#include "exports/launch.hpp"
#include "exports/yaml.hpp"

namespace ganymede::exports {
namespace {
using kubernetes::Names;

/// Kubernetes refuses a ConfigMap above 1 MiB.
constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20U;
/// Failures for each shard after which the whole Job is given up. Pods whose node is taken back do not count.
constexpr int kFailuresEach = 6;
/// Seconds between SIGTERM and SIGKILL: a shard ends with the runs that it has begun.
constexpr int kGrace_s = 60;
constexpr const char* kStudyFolder = "/study";

/// Throws ConfigError if a text of the study names a file beside it, which a pod does not have.
void refuse_files(const Json& value, const std::string& pointer, const JsonNode& study) {
  if (value.is_object())
    for (const auto& [key, member] : value.items()) refuse_files(member, pointer + "/" + key, study);
  for (std::size_t i = 0; value.is_array() && i < value.size(); ++i)
    refuse_files(value[i], fmt::format("{}/{}", pointer, i), study);
  if (!value.is_string()) return;
  std::error_code ignored;
  const std::string& name = value.as_string();
  if (!std::filesystem::is_regular_file(study.directory() / name, ignored)) return;
  throw ConfigError(
      fmt::format("{}: {}: names the file {}, which pods do not have; put the study and its files into "
                  "the image and say where with --study /path/study.json",
                  study.file(), pointer, name));
}

OrderedJson part(const char* version, const char* kind, const std::string& name, const std::string& comment = "") {
  return kubernetes::manifest(version, kind, name, {{"app.kubernetes.io/part-of", "ganymede"}}, comment);
}

OrderedJson shards_claim(const Names& names, int disk_gb) {
  OrderedJson out = part("v1", "PersistentVolumeClaim", names.claim(),
                         "The folder of the shards. Its storage class must offer ReadWriteMany (EFS, Filestore, Azure "
                         "Files, NFS).");
  out["spec"] = {{"accessModes", {"ReadWriteMany"}},
                 {"resources", {{"requests", {{"storage", fmt::format("{}Gi", disk_gb)}}}}}};
  return out;
}

OrderedJson shards_job(const SweepJob& job, const Names& names, const std::string& study, bool mounted,
                       const std::string& image) {
  OrderedJson container = {{"name", "shard"}, {"image", image}};
  container["command"] = {"ganymede",
                          "sweep",
                          study,
                          "--shard",
                          fmt::format("auto/{}", job.shards),
                          "--jobs",
                          std::to_string(job.cpus),
                          "-o",
                          job.folder.empty() ? "/data/" + job.name : job.folder};
  container["resources"] = {{"requests", {{"cpu", std::to_string(job.cpus)}}}};
  container["volumeMounts"] = OrderedJson::array({{{"name", kubernetes::kVolume}, {"mountPath", "/data"}}});
  OrderedJson volumes = OrderedJson::array({kubernetes::volume_claim(names)});
  if (mounted) {
    container["volumeMounts"].push_back({{"name", "study"}, {"mountPath", kStudyFolder}});
    volumes.push_back({{"name", "study"}, {"configMap", {{"name", names.base + "-study"}}}});
  }
  OrderedJson out = part("batch/v1", "Job", names.base);
  OrderedJson& spec = out["spec"];
  spec["completionMode"] = "Indexed";
  spec["completions"] = job.shards;
  spec["#parallelism"] = "Fewer at once are as good: shards need not run together.";
  spec["parallelism"] = job.shards;
  spec["backoffLimit"] = kFailuresEach * job.shards;
  spec["podFailurePolicy"] = {
      {"rules", {{{"action", "Ignore"}, {"onPodConditions", {{{"type", "DisruptionTarget"}, {"status", "True"}}}}}}}};
  spec["template"]["metadata"] = {{"labels", {{"app.kubernetes.io/name", names.base}}}};
  spec["template"]["spec"] = {{"restartPolicy", "Never"},
                              {"terminationGracePeriodSeconds", kGrace_s},
                              {"containers", OrderedJson::array({container})},
                              {"volumes", volumes}};
  return out;
}

}  // namespace

std::string kubernetes_sweep(const report::Document& document, const ExportValues& values, const std::string& image) {
  const SweepJob job = read_sweep_job(document, values);
  const Names names{job.name};
  const bool mounted = values.text("study").empty();
  if (mounted) refuse_files(document.json(), "", document.node);
  std::string out = write_yaml_comment(fmt::format(
      "The study \"{0}\" in {1} shards, each a pod. Applying it again does what is missing, after\n"
      "  kubectl delete job {2}\n"
      "In a pod that mounts the claim {3}: ganymede merge {4} --status, then ganymede merge {4} -o result.json",
      job.title, job.shards, job.name, names.claim(), job.folder.empty() ? "/data/" + job.name : job.folder));
  std::vector<OrderedJson> documents = {shards_claim(names, values.integer("disk"))};
  if (mounted) {
    OrderedJson config = part("v1", "ConfigMap", names.base + "-study");
    const std::string text = document.json().dump(1) + "\n";
    if (text.size() > kMaxConfigBytes)
      throw ConfigError(
          fmt::format("{}: is larger than the MiB that a ConfigMap holds; put it into the image and say "
                      "where with --study",
                      document.node.file()));
    config["data"] = {{"study.json", text}};
    documents.push_back(config);
  }
  const std::string study = mounted ? fmt::format("{}/study.json", kStudyFolder) : values.text("study");
  documents.push_back(shards_job(job, names, study, mounted, image));
  for (const OrderedJson& one : documents) out += "---\n" + write_yaml(one);
  return out;
}

}  // namespace ganymede::exports
