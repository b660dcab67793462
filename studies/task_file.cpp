#include "studies/task_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/plain_text.hpp"
#include "common/printable.hpp"
#include "platforms/catalog.hpp"
#include "platforms/gpu_names.hpp"

namespace ganymede::studies {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;
constexpr int kMostVisits = 100'000;  // aliases may repeat a small file without end

[[noreturn]] void fail(const std::string& file, const YAML::Node& at, const std::string& what) {
  throw ConfigError(fmt::format("{}: line {}: {}", file, at.Mark().line + 1, what));
}

std::string text_of(const YAML::Node& node) { return node && node.IsScalar() ? printable(node.Scalar()) : ""; }

/// A count such as 8 or "8"; nothing for anything else.
std::optional<int> count_of(const YAML::Node& node) {
  const auto value = parse_number<int>(text_of(node));
  return value && *value >= 0 && *value <= kMostAskedNodes ? value : std::nullopt;
}

int count_at(const std::string& file, const YAML::Node& node, const char* key, int otherwise, int least = 0) {
  if (!node[key] || node[key].IsNull()) return otherwise;
  if (const auto count = count_of(node[key]); count && *count >= least) return *count;
  fail(file, node[key],
       fmt::format("{}: found \"{}\", expected a count{}", key, text_of(node[key]), least > 0 ? " above 0" : ""));
}

/// "A100:8", or "A100", of which there is one then.
void set_accelerator(const std::string& file, const YAML::Node& at, const std::string& text, AskedResources& out) {
  const std::size_t sign = text.find(':');
  out.gpu = text.substr(0, sign), out.gpus_per_node = 1;
  if (sign == std::string::npos) return;
  const std::string stated = text.substr(sign + 1);
  const auto share = parse_number<double>(stated);
  if (share && *share > 0 && *share < 1)
    return out.notes.push_back(fmt::format("{} of a GPU: a whole one is priced", stated));
  const auto count = count_of(YAML::Node(stated));
  if (!count) fail(file, at, fmt::format("accelerators: found \"{}\", expected NAME:COUNT", text));
  out.gpus_per_node = *count;
}

/// SkyPilot counts machines of TPUs, "tpu-v3-8": a machine of that name is an instance type here.
void set_tpu(AskedResources& out) {
  if (!out.gpu.starts_with("tpu-v")) return;
  out.instance = out.gpu, out.gpu.clear();
  if (out.cloud.empty()) out.cloud = "gcp";
  out.gpus_per_node = 0;
}

// ---- SkyPilot (docs.skypilot.co, task YAML) ----

/// The alternative among `count` that `out.choice` stands for: those that are read first change fastest.
std::size_t taken_of(std::size_t count, bool ordered, AskedResources& out) {
  constexpr std::size_t kMostChoices = 1000;
  const auto before = static_cast<std::size_t>(out.choices);
  if (before * count > kMostChoices) return 0;
  out.choices = static_cast<int>(before * count);
  const std::size_t taken = static_cast<std::size_t>(out.choice) / before % count;
  if (count > 1) out.path.push_back({taken, ordered});
  return taken;
}

/// Accelerators are a name, a map from names to counts, a set of choices, or a list of them by preference.
void read_accelerators(const std::string& file, const YAML::Node& node, AskedResources& out) {
  if (node.IsScalar()) return set_accelerator(file, node, node.Scalar(), out);
  const auto choices = std::count_if(node.begin(), node.end(), [&](const auto& one) {
    return node.IsSequence() || !text_of(one.first).empty();  // "{A100: 8,, }" has a name that is empty
  });
  if (choices == 0) return;
  const std::size_t taken = taken_of(static_cast<std::size_t>(choices), node.IsSequence(), out);
  if (node.IsSequence() && node[taken].IsScalar()) return set_accelerator(file, node, node[taken].Scalar(), out);
  if (node.IsSequence()) fail(file, node, "accelerators: expected names of GPUs");
  auto at = node.begin();
  for (std::size_t named = 0; text_of(at->first).empty() || named++ < taken;) ++at;
  const auto first = *at;
  if (!first.second.IsScalar() && !first.second.IsNull()) fail(file, node, "accelerators: expected a count of each");
  const std::string count = text_of(first.second);
  set_accelerator(file, node,
                  text_of(first.first) + (count.empty() || count == "null" || count == "~" ? "" : ":" + count), out);
}

void read_resources(const std::string& file, const YAML::Node& node, AskedResources& out, int depth = 0) {
  constexpr int kDeepest = 16;  // an alias may lead back to the node around it
  if (!node.IsMap()) return;
  if (depth > kDeepest) fail(file, node, fmt::format("found more than {} levels of choices", kDeepest));
  for (const char* choices : {"any_of", "ordered"})
    if (node[choices] && node[choices].IsSequence() && node[choices].size() > 0)
      read_resources(file, node[choices][taken_of(node[choices].size(), choices[0] == 'o', out)], out, depth + 1);
  if (node["accelerators"]) read_accelerators(file, node["accelerators"], out);
  set_tpu(out);
  if (const std::string infra = text_of(node["infra"]); !infra.empty()) {
    out.cloud = infra.substr(0, infra.find('/'));
    if (infra.find('/') != std::string::npos) {
      const std::string rest = infra.substr(infra.find('/') + 1);
      out.region = rest.substr(0, rest.find('/'));
    }
  }
  const auto take = [&](const char* key, std::string& into) {
    if (const std::string text = text_of(node[key]); !text.empty() && text != "null" && text != "~" && text != "*")
      into = text;
  };
  if (const YAML::Node& type = node["instance_type"]; type && !type.IsScalar() && !type.IsNull())
    fail(file, type, "instance_type: expected one name");
  take("cloud", out.cloud), take("region", out.region), take("instance_type", out.instance);
  out.cloud = lower_case(out.cloud);
  if (!node["use_spot"] || node["use_spot"].IsNull()) return;
  if (!YAML::convert<bool>::decode(node["use_spot"], out.spot))
    fail(file, node["use_spot"],
         fmt::format("use_spot: found \"{}\", expected true or false", text_of(node["use_spot"])));
}

// ---- Kubernetes ----

/// Whether the replicas of a node are whole jobs, as in a JobSet and a LeaderWorkerSet, and not pods.
bool repeats_jobs(const YAML::Node& node) {
  YAML::Node at = node;
  if (at["leaderWorkerTemplate"].IsDefined()) return true;
  for (const char* key : {"template", "spec", "template"}) {
    if (!at.IsMap() || !at[key].IsDefined()) return false;
    at.reset(at[key]);
  }
  return true;
}

/// Chips of a topology such as 2x4 or 4x4x8; nothing for other text.
std::optional<std::int64_t> chips_of(const std::string& topology) {
  std::int64_t chips = 1;
  std::istringstream sides(topology);
  for (std::string side; std::getline(sides, side, 'x');) {
    const auto length = parse_number<int>(side);
    if (!length || *length < 1 || (chips *= *length) > kMostAskedNodes) return std::nullopt;
  }
  return topology.empty() ? std::nullopt : std::optional(chips);
}

/// Throws ConfigError unless a catalog has the instance type of a slice.
void check_slice(const std::string& file, const std::string& slice, const std::string& instance) {
  std::vector<std::string> same, all;
  for (const std::string& provider : platforms::provider_names())
    for (const platforms::Instance& of : platforms::catalog(provider).instances) {
      if (of.name == instance) return;
      if (of.name.starts_with("tpu-")) all.push_back(of.name);
      if (of.name.starts_with(instance.substr(0, instance.rfind('-') + 1))) same.push_back(of.name);
    }
  throw ConfigError(fmt::format("{}: a slice of {} is the instance type {}, which no catalog has; there are {}", file,
                                slice, instance, fmt::join(same.empty() ? all : same, ", ")));
}

/// Adds the pods with GPUs below a node. `pods` is how many there are of what the node is in, the product of the
/// replicas and the parallelism above, and `jobs` how many jobs these pods are of.
class Manifest {
 public:
  Manifest(const std::string& file, AskedResources& out) : file_(file), out_(out) {}

  void visit(const YAML::Node& node, std::int64_t pods, std::int64_t jobs, int depth) {
    constexpr int kDeepest = 64;
    if (++visits_ > kMostVisits || depth > kDeepest)
      throw ConfigError(file_ + ": too large or too deep for a manifest");
    if (node.IsSequence())
      for (const YAML::Node& item : node) visit(item, pods, jobs, depth + 1);
    if (!node.IsMap()) return;
    const std::int64_t around = pods;
    for (const char* key : {"replicas", "parallelism"})
      if (node[key].IsDefined() && node[key].IsScalar()) pods *= count_at(file_, node, key, 1);
    if (around > 0 && repeats_jobs(node)) jobs *= pods / around;
    if (const auto count = count_of(node["size"])) pods *= *count;
    if (pods > kMostAskedNodes) fail(file_, node, fmt::format("found more than {} pods", kMostAskedNodes));
    if (node["containers"] && node["containers"].IsSequence()) add_pods(node, pods, jobs);
    if (node["resourcesPerNode"] && node["resourcesPerNode"].IsMap())  // a TrainJob of Kubeflow's trainer
      add(most_gpus(node["resourcesPerNode"]), pods * count_at(file_, node, "numNodes", 1), jobs);
    if (const YAML::Node& overrides = node["podTemplateOverrides"]; overrides && overrides.IsSequence())
      for (const YAML::Node& of : overrides)
        if (of.IsMap() && of["spec"] && of["spec"].IsMap()) read_place(of["spec"]);
    for (const auto& member : node)
      if (text_of(member.first) != "containers") visit(member.second, pods, jobs, depth + 1);
  }

  /// GKE counts chips; instance types are named by the chips of all, or by their cores before v5e and in v5p. A
  /// topology says how many chips a slice has, which the pods of a job share; without one each pod has its own.
  void finish() {
    if (!is_tpu_) return;
    const std::string label = std::exchange(out_.gpu, "");
    const bool lite = label.find("v5-lite") != label.npos, counts_chips = lite || label.find("v6e") != label.npos;
    const std::size_t at = label.find("-v");
    const std::string generation = lite               ? "v5litepod"
                                   : at == label.npos ? ""
                                                      : label.substr(at + 1, label.find('-', at + 1) - at - 1);
    if (generation.empty())
      throw ConfigError(file_ +
                        ": asks for TPUs of no generation; expected a label cloud.google.com/gke-tpu-accelerator");
    const auto stated = chips_of(topology_);
    if (!topology_.empty() && (!stated || *stated < out_.gpus_per_node))
      throw ConfigError(
          fmt::format("{}: cloud.google.com/gke-tpu-topology: found \"{}\", expected one such as 2x4 with "
                      "at least the {} chips of a pod",
                      file_, topology_, out_.gpus_per_node));
    const std::int64_t chips = stated.value_or(out_.gpus_per_node);
    nodes = 0;
    for (const Pods& of : pods_) nodes += of.jobs * ((of.pods / of.jobs * of.chips + chips - 1) / chips);
    if (!stated && pods_.front().pods > 1)
      out_.notes.emplace_back("no label cloud.google.com/gke-tpu-topology: each pod is taken as a slice of its own");
    out_.instance = fmt::format("tpu-{}-{}", generation, (counts_chips ? 1 : 2) * chips);
    check_slice(file_, fmt::format("{} of {}", topology_.empty() ? fmt::format("{} chips", chips) : topology_, label),
                out_.instance);
    out_.cloud = "gcp", out_.gpus_per_node = 0;
  }

  std::int64_t nodes = 0;

 private:
  struct Pods {
    std::int64_t chips, pods, jobs;
  };

  void add_pods(const YAML::Node& pod, std::int64_t pods, std::int64_t jobs) {
    int gpus = 0;
    for (const YAML::Node& container : pod["containers"])
      if (container.IsMap() && container["resources"] && container["resources"].IsMap())
        gpus += most_gpus(container["resources"]);
    if (add(gpus, pods, jobs)) read_place(pod);
  }

  /// Labels that a pod's node must have.
  void read_place(const YAML::Node& pod) {
    if (pod["nodeSelector"] && pod["nodeSelector"].IsMap())
      for (const auto& label : pod["nodeSelector"]) read_label(text_of(label.first), text_of(label.second));
    read_affinity(pod);
  }

  /// GPUs, or chips of a TPU, in limits and requests, whichever has more.
  int most_gpus(const YAML::Node& resources) {
    int most = 0;
    for (const char* kind : {"limits", "requests"})
      if (const YAML::Node& of = resources[kind]; of && of.IsMap())
        for (const auto& one : of) {
          const std::string name = text_of(one.first);
          if (!name.ends_with("/gpu") && name != "google.com/tpu") continue;
          const auto count = count_of(one.second);
          if (!count) fail(file_, one.second, fmt::format("{}: expected a count", name));
          most = std::max(most, *count);
          is_tpu_ = is_tpu_ || name == "google.com/tpu";
        }
    return most;
  }

  bool add(int gpus, std::int64_t pods, std::int64_t jobs) {
    if (gpus == 0 || pods == 0) return false;
    pods_.push_back({gpus, pods, jobs});
    if (out_.gpus_per_node > 0 && gpus != out_.gpus_per_node)
      out_.notes.push_back(
          fmt::format("pods of {} and of {} GPUs: all are taken as the larger", out_.gpus_per_node, gpus));
    out_.gpus_per_node = std::max(out_.gpus_per_node, gpus);
    nodes += pods;
    return true;
  }

  /// Labels that a node must have; of several terms and of several values, which are alternatives, the first counts.
  void read_affinity(const YAML::Node& pod) {
    YAML::Node at = pod;
    for (const char* key :
         {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}) {
      if (!at.IsMap() || !at[key]) return;
      at.reset(at[key]);
    }
    if (!at.IsSequence() || at.size() == 0) return;
    if (at.size() > 1) out_.notes.push_back(fmt::format("nodeSelectorTerms: the first of {} is taken", at.size()));
    const YAML::Node term = at[0];
    if (!term.IsMap() || !term["matchExpressions"] || !term["matchExpressions"].IsSequence()) return;
    for (const YAML::Node& rule : term["matchExpressions"]) {
      if (!rule.IsMap() || text_of(rule["operator"]) != "In") continue;
      const YAML::Node& values = rule["values"];
      if (!values || !values.IsSequence() || values.size() == 0) continue;
      const std::string name = text_of(rule["key"]);
      if (read_label(name, text_of(values[0])) && values.size() > 1)
        out_.notes.push_back(fmt::format("{}: the first of {} values is taken", name, values.size()));
    }
  }

  /// Whether the label's value says which nodes are meant.
  bool read_label(const std::string& name, const std::string& value) {
    const bool names_gpu = name == "nvidia.com/gpu.product" || name == "cloud.google.com/gke-accelerator" ||
                           name.ends_with("/instance-gpu-name") || name == "skypilot.co/accelerator" ||
                           name == "gpu.nvidia.com/model" || name == "gpu.nvidia.com/class" ||
                           name == "cloud.google.com/gke-tpu-accelerator";
    std::string* const into = names_gpu                                        ? &out_.gpu
                              : name.ends_with(".kubernetes.io/instance-type") ? &out_.instance
                              : name == "cloud.google.com/gke-tpu-topology"    ? &topology_
                              : name == "topology.kubernetes.io/region"        ? &out_.region
                                                                               : nullptr;
    if (into != nullptr) *into = value;
    if (name.starts_with("cloud.google.com/")) out_.cloud = "gcp";
    if (name.starts_with("karpenter.k8s.aws/") || name.starts_with("eks.amazonaws.com/")) out_.cloud = "aws";
    if (name.starts_with("kubernetes.azure.com/")) out_.cloud = "azure";
    if ((name == "karpenter.sh/capacity-type" && value == "spot") ||
        (name == "cloud.google.com/gke-spot" && value == "true") ||
        (name == "eks.amazonaws.com/capacityType" && value == "SPOT") ||
        (name == "kubernetes.azure.com/scalesetpriority" && value == "spot"))
      out_.spot = true;
    return into != nullptr;
  }

  const std::string& file_;
  AskedResources& out_;
  std::vector<Pods> pods_;
  std::string topology_;
  int visits_ = 0;
  bool is_tpu_ = false;
};

/// Throws YAML's exception where a document begins in the same place as the one before: the library finds it for ever
/// behind a comma that stands alone.
class DocumentsGoOn final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == last_) throw YAML::ParserException(mark, "expected YAML, found a character that is none");
    last_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int last_ = -1;
};

AskedResources read_yaml(const std::string& file, const std::string& text, int choice) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  for (DocumentsGoOn ends; parser.HandleNextDocument(ends);) {
  }
  const std::vector<YAML::Node> documents = YAML::LoadAll(text);
  AskedResources out{.format = "Kubernetes manifest", .gpu = "", .choice = choice};
  Manifest manifest(file, out);
  for (const YAML::Node& document : documents) {
    if (!document.IsMap()) continue;
    if (document["apiVersion"] || document["kind"]) {
      manifest.visit(document, 1, 1, 0);
    } else if (document["resources"] || document["num_nodes"] || document["run"]) {
      const YAML::Node resources = document["resources"];
      const bool azure = resources && resources.IsMap() && resources["instance_count"];
      out.format = azure ? "Azure ML job" : "SkyPilot task";
      if (azure) out.cloud = "azure";
      if (resources) read_resources(file, resources, out);
      out.nodes =
          azure ? count_at(file, resources, "instance_count", 1, 1) : count_at(file, document, "num_nodes", 1, 1);
    }
  }
  manifest.finish();
  if (manifest.nodes > kMostAskedNodes)
    throw ConfigError(fmt::format("{}: found more than {} pods", file, kMostAskedNodes));
  if (manifest.nodes > 0) out.nodes = static_cast<int>(manifest.nodes);
  return out;
}

}  // namespace

AskedResources read_task_file(const std::string& file, int choice) {
  const std::string text = read_file(file);
  if (text.size() > kMostBytes)
    throw ConfigError(file + ": larger than 1 MiB, expected a task, a script or a manifest");
  AskedResources out;
  try {
    out = text.find("#SBATCH") != std::string::npos ? read_slurm_script(file, text) : read_yaml(file, text, choice);
  } catch (const YAML::Exception& error) {
    throw ConfigError(fmt::format("{}: line {}: {}", file, error.mark.line + 1, error.msg));
  }
  if (out.gpus_per_node == 0 && out.instance.empty() && out.choices == 1)
    throw ConfigError(file +
                      ": asks for no GPU; expected a SkyPilot task with accelerators, a Slurm script with --gres or "
                      "--gpus, a manifest "
                      "whose pods have nvidia.com/gpu, or an Azure ML job whose resources have instance_type");
  return out;
}

}  // namespace ganymede::studies
