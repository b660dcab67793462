#pragma once
// Turns what the page posts into an input file of the program. No member of a form is copied unchecked: each is read by
// its type, and what could name a file or a program (a trace, a catalog, a policy) must be an option that
// form_options.hpp offers. The rest (whether the catalog has that region, what a deadline's text says) is checked by
// the command that reads the file.

#include <string>
#include <vector>

#include "common/json.hpp"
#include "serve/form_options.hpp"

namespace ganymede::serve {

/// The command of a job. compare: `sweep` of a study; plan: `plan` of a request; generate: images of a checkpoint.
enum class JobKind { compare, plan, generate };
std::string_view to_string(JobKind kind);
JobKind read_job_kind(const JsonNode& node);

struct Form {
  JobKind kind = JobKind::compare;
  std::string title;  ///< for people
  std::string input;  ///< the job's input.json
};

/// Reads what the page posts. Throws ConfigError, which names the place in the form, for a value that is not offered
/// and for one of the wrong type.
Form read_form(const JsonNode& form, const Checkpoints& checkpoints);

/// The program's arguments for a job; `input` is the content of the input.json in its folder. Throws ConfigError if it
/// names a checkpoint that no longer exists.
std::vector<std::string> arguments_of(JobKind kind, const std::string& input, const Checkpoints& checkpoints,
                                      int cores);

}  // namespace ganymede::serve
