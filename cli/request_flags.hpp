#pragma once
// Flags that each stand for one member of a scenario or request: `simulate --nodes 2` is `--set /platform/nodes=2`.
// Flags of a request are the same for all commands that search for what to rent.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/shared_options.hpp"
#include "common/errors.hpp"
#include "plan/planner.hpp"
#include "report/compared.hpp"

namespace ganymede::cli {

/// The values that such flags have set, by the JSON pointer of the member. It must outlive the parsing.
class MemberFlags {
 public:
  /// Declares flags of a command. Without a flag its member stays as the file has it.
  struct Declaring {
    Option text(const char* flag, const char* pointer, const char* what) const;
    Option number(const char* flag, const char* pointer, const char* what) const;
    /// A count that may be large, which may be written as 50M or 5e7.
    Option count(const char* flag, const char* pointer, const char* what) const;
    /// Values separated by commas.
    Option list(const char* flag, const char* pointer, const char* what) const;

    MemberFlags& flags;
    Parser command;
  };
  Declaring of(Parser command) { return {*this, command}; }

  bool has(const std::string& pointer) const;
  /// The flag of a member: "--nodes".
  const std::string& flag(const std::string& pointer) const { return names_.at(pointer); }
  /// Sets a member as if its flag had been given.
  void set(const std::string& pointer, const std::string& value) { texts_[pointer] = value; }

  /// The replacements that the flags ask for.
  std::vector<JsonOverride> overrides() const;

  /// Calls `read`. A ConfigError about a member that a flag has set names the flag instead of file and pointer:
  /// "--deadline: found "60", which has no unit; write "60h" or "60min"".
  template <class Read>
  auto locate(Read read) const {
    try {
      return read();
    } catch (const ConfigError& error) {
      throw ConfigError(with_flag(error.what()));
    }
  }

 private:
  std::string with_flag(const std::string& message) const;

  std::map<std::string, std::string> texts_;
  std::map<std::string, std::int64_t> numbers_;
  std::map<std::string, std::vector<std::string>> lists_;
  std::map<std::string, std::string> names_;  ///< the flags by pointer
};

/// A request as the command line states it.
struct RequestFlags {
  std::string file;  ///< empty: flags say everything
  MemberFlags members;
  std::vector<std::int64_t> batches;
  MeasuredOptions measured;
  double certainty = 0;  ///< 0: not given
  std::string seed;
  std::vector<std::string> assignments;
  bool sure = false;
  std::string saves;  ///< of --saves; empty: not given
};

/// Declares the flags, which must outlive the parsing, and --set. Not the file, and not the instance types.
void declare_request(Parser command, RequestFlags& flags);

/// The request with its flags and then `more` applied. Relative paths in flags start at the working directory, as those
/// of --set do. Throws ConfigError, which names `command`, if neither a file nor a model is given.
JsonNode request_of(const RequestFlags& flags, const char* command, const std::vector<JsonOverride>& more = {});

/// The best candidate of the request with these replacements, as a plan finds it. `narrow` may change what was read.
report::Compared best_of(const RequestFlags& flags, const char* command, const std::string& name,
                         const std::vector<JsonOverride>& more, const plan::PlanOptions& search,
                         const std::function<void(plan::Request&)>& narrow = {});

/// Without a training the offers of an hour; with one also the training as the file asks, beside the best of all.
void run_like(const std::string& file, const RequestFlags& flags, Shared& shared);

}  // namespace ganymede::cli
