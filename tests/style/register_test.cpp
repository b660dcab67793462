// Adding a policy, a provider, a model, … means one file and one row of one table. For one of each kind, this test
// looks for everything else that names it: lists, schemas, help, documentation's tables and the page's options must
// come from the table.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include "tree.hpp"

namespace ganymede {
namespace {

struct Exemplar {
  const char* kind;
  const char* name;
  std::vector<const char*> files;          ///< its own and that of its row; empty: nothing needs to name it
  std::vector<const char*> mentions = {};  ///< files that give it as an example or run it
};

// A kind is skipped if one of its files does not exist.
const Exemplar kExemplars[] = {
    {"policy", "carbon-aware", {"policies/carbon_aware.cpp", "policies/policies.cpp"}},
    {"provider", "genesis", {"platforms/catalog/genesis.json", "platforms/providers.cpp"}},
    {"schema", "layers.json", {}},
    {"model",
     "progressive-gan-video",
     {"kernel/models/progressive_gan.cpp", "kernel/models/models.cpp"},
     {"kernel/models/models.hpp"}},
    {"scheme", "halving-doubling", {"sim/collectives/schemes/halving_doubling.cpp", "sim/collectives/allreduce.cpp"}},
    {"exporter",
     "skypilot",
     {"exports/skypilot.cpp", "exports/exporters.cpp"},
     {"cli/export.cpp", "exports/skypilot.hpp", "platforms/price_list.cpp"}},
    {"command", "doctor", {"cli/doctor.cpp", "cli/commands.cpp"}, {"exports/skypilot.cpp", "quickstart"}},
};

/// True if the rule applies to the file. Text for people, tests, and data of studies may name anything.
bool counts(const Source& source) {
  return !source.is_binary() && !source.path.ends_with(".md") && !source.is_under("tests/") &&
         !source.is_under("studies/") && !source.is_under("bench/") && !source.is_under("tools/");
}

/// True if the text has the name as a word or an identifier: "carbon-aware", "carbon_aware", "carbon_aware_policy".
bool has_name(const std::string& text, const std::string& name) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; };
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) return true;
  }
  return false;
}

bool names(const Source& source, std::string name) {
  if (has_name(source.text, name)) return true;
  std::replace(name.begin(), name.end(), '-', '_');
  return has_name(source.text, name);
}

bool is_among(const std::vector<const char*>& files, const std::string& path) {
  return std::find(files.begin(), files.end(), path) != files.end();
}

bool is_there(const char* path) {
  return std::any_of(tree().begin(), tree().end(), [&](const Source& source) { return source.path == path; });
}

TEST(Registers, AreTheOnlyPlaceThatNamesWhatTheyHold) {
  for (const Exemplar& exemplar : kExemplars) {
    if (!std::all_of(exemplar.files.begin(), exemplar.files.end(), is_there)) continue;
    for (const Source& source : tree()) {
      if (!counts(source) || !names(source, exemplar.name)) continue;
      EXPECT_TRUE(is_among(exemplar.files, source.path) || is_among(exemplar.mentions, source.path))
          << source.path << " names the " << exemplar.kind << " " << exemplar.name
          << "; adding one would need a change there";
    }
  }
}

// The rule above would pass if the names had changed.
TEST(Registers, HoldTheExemplars) {
  for (const Exemplar& exemplar : kExemplars)
    for (const Source& source : tree()) {
      if (!is_among(exemplar.files, source.path)) continue;
      EXPECT_TRUE(source.path.ends_with(".json") || names(source, exemplar.name))
          << source.path << " does not name the " << exemplar.kind << " " << exemplar.name;
    }
}

}  // namespace
}  // namespace ganymede
