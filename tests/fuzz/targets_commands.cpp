// Whole commands in this process, with their options and a document together.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "cli/program.hpp"
#include "common/errors.hpp"
#include "target.hpp"

namespace ganymede::fuzz {
namespace {

/// Only commands and options that write nothing but standard output or below OUT, and start no program.
constexpr std::string_view kCommands[] = {"simulate", "plan",     "allreduce", "report",  "export",     "fits",
                                          "import",   "schema",   "sweep",     "merge",   "why-slow",   "check",
                                          "kernels",  "validate", "learn",     "compare", "compare-own"};
constexpr std::string_view kOptions[] = {"--set",           "--format",    "--seed",       "--jobs",
                                         "--fidelity",      "--catalog",   "--instance",   "--nodes",
                                         "--scheme",        "--bytes",     "--groups",     "--late",
                                         "--model",         "--gpu",       "--batch",      "--images",
                                         "--budget",        "--deadline",  "--region",     "--effort",
                                         "--gpus-per-node", "--market",    "--seeds",      "--collective",
                                         "--nic",           "--step",      "--recipe",     "--on",
                                         "--show-steps",    "--launcher",  "--gpus",       "--images-per-second",
                                         "--policy",        "--shard",     "--partial",    "--status",
                                         "--objective",     "--certainty", "--checkpoint", "--tolerance",
                                         "--one",           "--all",       "--like",       "--episodes",
                                         "--learners",      "--held-out",  "--replay"};
constexpr std::string_view kValues[] = {"0",
                                        "1",
                                        "2",
                                        "3",
                                        "-1",
                                        "64",
                                        "1000",
                                        "1e9",
                                        "0.11s",
                                        "90s",
                                        "60h",
                                        "2020-02-02T00:00Z",
                                        "10MB",
                                        "64KiB,1MiB",
                                        "8x200Gbit/s",
                                        "100USD",
                                        "250img/s",
                                        "100it/s",
                                        "V100",
                                        "A100-40GB",
                                        "T4",
                                        "p3.8xlarge",
                                        "g4dn.xlarge",
                                        "p4d.24xlarge",
                                        "aws",
                                        "gcp",
                                        "private",
                                        "all",
                                        "us-east-1",
                                        "us-west-2",
                                        "spot",
                                        "on-demand",
                                        "reserved-1y",
                                        "json",
                                        "csv",
                                        "table",
                                        "message",
                                        "sampled",
                                        "ring",
                                        "tree",
                                        "nccl",
                                        "rings:2",
                                        "double-binary-tree",
                                        "parameter-server",
                                        "parameter-server:all",
                                        "hierarchical",
                                        "reduce-to-one",
                                        "fixed",
                                        "spot-first",
                                        "greedy",
                                        "q-learning",
                                        "dcgan-64",
                                        "mlp-gan",
                                        "stylegan2?image=256",
                                        "quick",
                                        "normal",
                                        "time",
                                        "carbon",
                                        "risk-averse"};
/// What changes most of a run's or a cluster's life.
constexpr std::string_view kSets[] = {
    R"(/faults={"crash":{"every":"2h"}})",
    R"(/faults={"network":{"every":"20min","for":"2min","factor":0.3}})",
    R"(/faults={"straggler":{"every":"20min","for":"2min","factor":3}})",
    R"(/faults={"storage":{"every":"20min","for":"2min","factor":0.3}})",
    R"(/checkpoint={"every":"10min"})",
    R"(/checkpoint={"every":"1epoch"})",
    R"(/checkpoint={"every":"daly"})",
    R"(/storage={"checkpoint":"s3"})",
    R"(/storage={"dataset":"s3"})",
    R"(/evaluation={"every":"1epoch","fixed":"30s"})",
    R"(/synchronization={"scheme":"ring","mode":"local-sgd","local_steps":8})",
    R"(/synchronization={"scheme":"ring","mode":"gossip"})",
    R"(/synchronization={"scheme":"parameter-server","mode":"async-parameter-server"})",
    R"(/platform/market="spot")",
    R"(/platform/nodes=4)",
    R"(/policy={"name":"spot-first"})",
    R"(/policy={"name":"predictive"})",
    R"(/policy={"name":"deadline"})",
    R"(/deadline="3h")",
    R"(/budget="5USD")",
    R"(/scheduler={"name":"kueue"})",
    R"(/scheduler={"name":"gavel"})",
    R"(/scheduler={"name":"pollux"})",
    R"(/scheduler={"name":"tiresias"})",
    R"(/fidelity={"mode":"message"})",
    R"(/placement="topology")",
    R"(/scheduler={"name":"fifo-backfill"})",
    R"(/scheduler={"name":"shortest-remaining"})",
    R"(/packing=1.2)",
    R"(/platform/nodes=2)",
    R"(/fidelity={"mode":"sampled"})",
    R"(/scheduler={"name":"slurm-multifactor"})",
    R"(/placement="spread")",
    R"(/policy={"name":"cheapest-region"})",
    R"(/policy={"name":"uniform-progress"})",
    R"(/policy={"name":"resource-aware"})",
    R"(/policy={"name":"kubernetes-autoscaler"})",
    R"(/policy={"name":"q-learning","table":"table.json"})",
    R"(/seeds={"first":1,"count":7})"};
/// The commands that documents of other targets' corpora are for.
constexpr Borrowed kBorrowed[] = {{"scenario", "simulate FILE --format json"},
                                  {"scenario", "simulate FILE --fidelity message"},
                                  {"cluster", "simulate FILE --format json"},
                                  {"study", "sweep FILE --format json --jobs 1"},
                                  {"study", "sweep FILE --shard 0/2 -o OUT ; merge OUT --partial"},
                                  {"scenario", "learn FILE --episodes 4 --learners 2 --held-out 1 --jobs 1"},
                                  {"request", "plan FILE --effort quick --jobs 1"},
                                  {"request", "plan FILE --shard 0/1 -o OUT --jobs 1 ; merge OUT --jobs 1"},
                                  {"nccl-log", "check nccl-log FILE --catalog aws --instance p4d.24xlarge"},
                                  {"profiler", "why-slow FILE --gpus 8 --gpu V100"},
                                  {"task-file", "plan --like FILE --jobs 1"}};

template <class List>
bool among(const List& list, const std::string& word) {
  return std::find(std::begin(list), std::end(list), std::string_view(word).substr(0, word.find('='))) !=
         std::end(list);
}

/// Standard output and error go nowhere while it lives.
class Silence {
 public:
  Silence() {
    std::fflush(nullptr);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (const int stream : {1, 2}) ::dup2(nowhere, stream);
    ::close(nowhere);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence() {
    std::fflush(nullptr);
    for (const int stream : {1, 2}) ::dup2(kept_[stream - 1], stream);
    for (const int kept : kept_) ::close(kept);
  }

 private:
  int kept_[2] = {::dup(1), ::dup(2)};
};

/// The folder that OUT stands for, empty at first. What is in it goes with the process.
class Outputs {
 public:
  Outputs() = default;
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  ~Outputs() { std::filesystem::remove_all(path.parent_path(), ignored_); }
  void clear() const {
    std::filesystem::remove_all(path.parent_path(), ignored_);  // with what a sweep keeps beside OUT
    std::filesystem::create_directories(path.parent_path(), ignored_);
  }
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("ganymede-fuzz-command-" + std::to_string(::getpid())) / "out";

 private:
  mutable std::error_code ignored_;
};

/// The rest of the input, beside what scenarios and clusters name.
std::filesystem::path beside_others(std::string_view document) {
  const std::filesystem::path file = folder_of_scenarios() / "input";
  std::ofstream(file, std::ios::binary) << document;
  return file;
}

/// The commands of a line, parted by semicolons. ConfigError if one might write elsewhere or start a program.
std::vector<std::vector<std::string>> commands_of(std::string_view text, std::string_view document,
                                                  const Outputs& outputs) {
  std::vector<std::vector<std::string>> commands(1);
  std::istringstream line{std::string(text)};
  for (std::string word; line >> word;) {
    std::vector<std::string>& words = commands.back();
    if (word == ";") {
      commands.emplace_back();
      continue;
    }
    const std::string before = words.empty() ? "" : words.back();
    const bool safe = words.empty()   ? among(kCommands, word)
                      : word == "OUT" ? before == "-o" || before == "merge"
                      : word == "-o"  ? true
                      : word.starts_with('-')
                          ? among(kOptions, word) && before != "-o"
                          : before != "-o" && (word.find('/') == word.npos || before == "--set" || before == "--shard");
    if (!safe || words.size() > 20 || commands.size() > 3) throw ConfigError("not a command that is tried here");
    words.push_back(word == "FILE" ? beside_others(document).string() : word == "OUT" ? outputs.path.string() : word);
  }
  return commands;
}

/// The first line holds the words, of which FILE stands for the rest.
void run_command(std::string_view bytes) {
  static const Outputs kOutputs;
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::string_view document = bytes.substr(std::min(end + 1, bytes.size()));
  // A policy or a scheduler of the user's own is a program, which would be started.
  if (bytes.find("external") != bytes.npos) throw ConfigError("a program of the user's own");
  kOutputs.clear();
  for (std::vector<std::string>& words : commands_of(bytes.substr(0, end), document, kOutputs)) {
    for (const char* word : {"--quiet", "--max-work", "100k", "--max-memory", "1GiB"}) words.emplace_back(word);
    int code = 0;
    {
      const Silence silence;
      code = cli::run_command_line(words);
    }
    // A claim of a changed study need not come out.
    expect(code == 0 || (code >= 2 && code <= 4) || (code == 1 && words[0] == "validate"),
           "an exit code that no child's crash and no library's exception gives");
  }
}

/// The document by the schema that it names; empty if it names none.
std::string changed_document(std::string_view document, RandomStream& random) {
  constexpr std::string_view kNamed = "\"ganymede.";
  const std::size_t at = document.find(kNamed), end = document.find("/1\"", at);
  if (at == document.npos || end == document.npos) return "";
  try {
    return changed_by_schema(document, document.substr(at + kNamed.size(), end - at - kNamed.size()), random);
  } catch (const Failure&) {  // there is no such schema
    return "";
  }
}

std::string change_command(std::string_view text, RandomStream& random) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string line(text.substr(0, end)), document(text.substr(std::min(end + 1, text.size())));
  const auto any = [&](const auto& list) { return std::string(list[random.below(std::size(list))]); };
  if (random.below(3) != 0)
    if (std::string changed = changed_document(document, random); !changed.empty()) document = std::move(changed);
  for (std::uint64_t count = random.below(3); count > 0; --count) switch (random.below(3)) {
      case 0:
        line += " --set " + any(kSets);
        break;
      case 1:
        line += " " + any(kOptions) + " " + any(kValues);
        break;
      default:
        if (const std::size_t space = line.rfind(' '); space != line.npos && space > 0) line.resize(space);
    }
  return line + "\n" + document;
}

}  // namespace

std::vector<Target> command_targets() {
  return {{.name = "command",
           .sources = "cli/simulate.cpp cli/plan.cpp cli/allreduce.cpp cli/program.cpp sim/run/run_simulation.cpp "
                      "sim/cluster/cluster_simulation.cpp studies/run_study.cpp",
           .read = run_command,
           .slow = 10,
           .change = change_command,
           .borrows = kBorrowed}};
}

}  // namespace ganymede::fuzz
