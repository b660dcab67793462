// Adds one more policy, provider or the like to a copy of the tree, counts the files that had to change, and runs the
// registers with it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "support/temporary_folder.hpp"
#include "tree.hpp"

namespace ganymede {
namespace {

namespace fs = std::filesystem;

/// The changes that adding one takes: a new file, and a row after a line of the table.
struct Addition {
  const char* file;  ///< "": the catalog, which is data and not compiled
  const char* text;
  const char* table;
  const char* before;  ///< the row after which the new one is inserted
  const char* row;
};

const Addition kPolicy = {"policies/dummy.cpp",
                          R"(#include "policies/policy_helpers.hpp"
namespace ganymede::policies {
namespace {
Decision decide_dummy(const PolicyCall& call) { return {.nodes = requested_nodes(call.observation)}; }
}  // namespace
Policy dummy_policy() {
  return {.name = "dummy", .summary = "a dummy", .source = "a test", .needs_budget = true, .decide = decide_dummy};
}
}  // namespace ganymede::policies
)",
                          "policies/policies.cpp", "  ROW(external)", " \\\n  ROW(dummy)"};
const Addition kModel = {"kernel/models/dummy.cpp",
                         R"(#include "kernel/models/models.hpp"
namespace ganymede::kernel {
Model dummy() { return {.name = "dummy"}; }
}  // namespace ganymede::kernel
)",
                         "kernel/models/models.cpp", "  ROW(progressive_gan_video)", " \\\n  ROW(dummy)"};
const Addition kProvider = {"", "", "platforms/providers.cpp", "    {.name = \"private\", .owned = true},",
                            "\n    {.name = \"dummy\", .vendor = \"Dummy Cloud\", .spot_notice = Seconds{7}},"};

const Addition kScheme = {"sim/collectives/schemes/dummy.cpp",
                          R"(#include "sim/collectives/allreduce.hpp"
namespace ganymede::sim {
extern const AllReduceScheme dummy_scheme{.name = "dummy", .summary = "a dummy"};
}  // namespace ganymede::sim
)",
                          "sim/collectives/allreduce.cpp", "  ROW(nccl)", " \\\n  ROW(dummy)"};
const Addition kExporter = {"exports/dummy.cpp",
                            R"(#include "exports/exporter.hpp"
namespace ganymede::exports {
Exporter dummy_exporter() { return {.name = "dummy"}; }
}  // namespace ganymede::exports
)",
                            "exports/exporters.cpp", "  ROW(mlflow)", " \\\n  ROW(dummy)"};
const Addition kCommand = {"cli/dummy.cpp",
                           R"(#include "cli/command.hpp"
namespace ganymede::cli {
Command dummy_command() { return {.name = "dummy"}; }
}  // namespace ganymede::cli
)",
                           "cli/commands.cpp", "  ROW(man)", " \\\n  ROW(dummy)"};

/// The C++ files of some folders, by path.
std::map<std::string, std::string> sources_of(const std::vector<std::string>& folders) {
  std::map<std::string, std::string> files;
  for (const Source& source : tree())
    for (const std::string& folder : folders)
      if (source.is_cpp() && source.is_under(folder)) files[source.path] = source.text;
  return files;
}

void apply(const Addition& addition, std::map<std::string, std::string>& files) {
  if (*addition.file != 0) files[addition.file] = addition.text;
  std::string& table = files.at(addition.table);
  const std::size_t at = table.find(addition.before);
  ASSERT_NE(at, std::string::npos) << addition.table;
  table.insert(at + std::string(addition.before).size(), addition.row);
}

std::size_t changed(const std::map<std::string, std::string>& before, const std::map<std::string, std::string>& after) {
  std::size_t count = 0;
  for (const auto& [path, text] : after) {
    const auto old = before.find(path);
    if (old == before.end() || old->second != text) ++count;
  }
  return count;
}

/// Expects the new file and its table, which stand in `folder`, to compile together.
void expect_compiles(const Addition& addition, const fs::path& folder) {
  const fs::path unit = folder / "unit.cpp";
  std::ofstream(unit) << "#include \"" << addition.file << "\"\n#include \"" << addition.table << "\"\n";
  const std::string check = std::string(GANYMEDE_CXX) + " -std=c++20 -fsyntax-only -I" + folder.string() +
                            " -I" GANYMEDE_SOURCE_DIR " " + unit.string();
  EXPECT_EQ(std::system(check.c_str()), 0) << check;
}

constexpr const char* kMain = R"(
#include <cstdio>
#include "platforms/providers.hpp"
#include "policies/policy.hpp"
int main() {
  using namespace ganymede;
  using namespace ganymede::platforms;
  using namespace ganymede::policies;
  const Policy* policy = find_policy("dummy");
  if (policy == nullptr || policy_names().back() != "dummy" || !policy->needs_budget) return 2;
  Observation observation;
  observation.pools.resize(1);
  observation.pools[0].requested = 3;
  PolicyMemory memory;
  RandomStream random{1, "test"};
  if (policy->decide({observation, {}, memory, random}).nodes[0] != 3) return 3;
  if (vendor_of("dummy") != "Dummy Cloud" || provider_of("dummy").spot_notice != Seconds{7}) return 4;
  std::puts("registered");
}
)";

TEST(Registers, TakeOneMore) {
  const auto before = sources_of({"policies/", "platforms/providers", "kernel/models/"});
  auto after = before;
  apply(kPolicy, after);
  EXPECT_EQ(changed(before, after), 2U) << "a policy is one file and one row";
  apply(kProvider, after);
  EXPECT_EQ(changed(before, after), 3U) << "a provider is one row, and its catalog";
  apply(kModel, after);
  EXPECT_EQ(changed(before, after), 5U) << "a model is one file and one row";

  const TemporaryFolder folder;
  std::ostringstream unit;
  for (const auto& [path, text] : after) {
    fs::create_directories((folder.path() / path).parent_path());
    std::ofstream(folder.path() / path) << text;
    // Models are made of layers, which are the whole kernel: these two are only compiled.
    if (path.ends_with(".cpp") && !path.starts_with("kernel/")) unit << "#include \"" << path << "\"\n";
  }
  unit << "#include \"common/random.cpp\"\n" << kMain;
  std::ofstream(folder.path() / "all.cpp") << unit.str();
  const std::string program = (folder.path() / "all").string();
  const std::string compiler =
      std::string(GANYMEDE_CXX) + " -std=c++20 -I" + folder.path().string() + " -I" GANYMEDE_SOURCE_DIR " ";
  const std::string compile = compiler + "-o " + program + " " + program + ".cpp";
  ASSERT_EQ(std::system(compile.c_str()), 0) << compile;
  EXPECT_EQ(std::system((program + " > /dev/null").c_str()), 0);

  expect_compiles(kModel, folder.path());
}

// They work in whole programs, which other tests run; here they are counted, and compiled beside their table.
TEST(Registers, TakeOneMoreSchemeExporterAndCommand) {
  for (const Addition& addition : {kScheme, kExporter, kCommand}) {
    const auto before = sources_of({addition.table});
    auto after = before;
    apply(addition, after);
    EXPECT_EQ(changed(before, after), 2U) << addition.file;
    const TemporaryFolder folder;
    for (const auto& [path, text] : after) {
      fs::create_directories((folder.path() / path).parent_path());
      std::ofstream(folder.path() / path) << text;
    }
    expect_compiles(addition, folder.path());
  }
}

}  // namespace
}  // namespace ganymede
