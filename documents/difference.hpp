#pragma once
// How two results, or two plans, differ, `ganymede.diff/1`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr std::string_view kDifferenceSchema = "ganymede.diff/1";

struct Difference {
  struct Side {
    static constexpr std::string_view kTypeName = "side";
    std::string file, subject;
  };
  /// A quantity of one document; empty where that does not know it.
  struct Known {
    static constexpr std::string_view kTypeName = "known";
    std::optional<double> value;
    std::optional<Interval> interval;
  };
  struct Quantity {
    static constexpr std::string_view kTypeName = "quantity";
    std::string what, unit;
    Known before, after;
    std::optional<double> change, relative;  ///< none unless both know it; relative to a value that is not 0
    std::optional<bool> within_error;        ///< none unless both have intervals
  };
  struct Input {
    std::string kind, pointer, name;
    JsonText before, after;
  };
  struct Limit {
    std::string what;
    double most = 0;
    bool held = true;
  };
  std::string compares;  ///< "results" or "plans"
  Side before, after;
  bool over_seeds = false;
  std::vector<Quantity> quantities;
  bool inputs_recorded = false;
  std::vector<Input> inputs;
  std::vector<Limit> limits;
  bool held = true;
};

void describe(Walk& walk, Difference& difference);
OrderedJson difference_json(const Difference& difference);

}  // namespace ganymede::documents
