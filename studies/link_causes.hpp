#pragma once
// What slows collectives down, as a table: each cause changes the description of a machine, or what NCCL is told, and a
// simulation of the changed machine says what would be measured.

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "platforms/platform.hpp"

namespace ganymede::studies {

/// The machine of a log, which a cause changes.
struct CheckedMachine {
  platforms::Instance instance;
  int nodes = 1, gpus_per_node = 1;
  std::optional<platforms::Instance> last_node = {};  ///< of another kind than the others
  std::string_view forced = {};                       ///< an algorithm or protocol: "ring", "ll"
};

struct LinkCause {
  std::string_view name;   ///< "one-nic"
  std::string_view says;   ///< a sentence without its end
  std::string_view shows;  ///< what would show it
  /// Changes the machine; `degree` is one of `degrees`. Returns false where there is nothing to change.
  bool (*change)(CheckedMachine& machine, double degree);
  std::vector<double> degrees;
  double weight = 1;                           ///< how often it is the cause beside the others, an assumption
  bool within_node = false;                    ///< of the links inside a node
  bool counts_nics = false;                    ///< the number of NICs that a log names speaks for it or against it
  std::vector<std::string_view> signs = {};    ///< words in a log that speak for it
  std::vector<std::string_view> against = {};  ///< and against it
  /// A line with the first word that lacks the second speaks for it too.
  std::pair<std::string_view, std::string_view> lacks = {};
  /// Words of a log that choose among `values`: what follows a variable of NCCL, or what a setting of another amounts
  /// to. They leave the degrees that they name alone.
  struct Setting {
    std::string_view words, means = "";
  };
  std::vector<Setting> settings = {};
  /// The values in lower case: first one for each degree, then those that no simulation has.
  std::vector<std::string_view> values = {};
};

std::span<const LinkCause> link_causes();

}  // namespace ganymede::studies
