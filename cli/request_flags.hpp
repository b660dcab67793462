#pragma once
// The flags that each stand for one member of a request, of the commands that search for what to rent.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/member_flags.hpp"
#include "cli/shared_options.hpp"

namespace ganymede::cli {

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

}  // namespace ganymede::cli
