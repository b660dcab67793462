#pragma once
// What the page posts, as an input file of the program. Nothing of a form is copied as it stands: each member is read
// by its type, and what could name a file or a program (a trace, a catalog, a policy) must be one that choices.hpp
// offers. Whether the rest makes sense (a region of that catalog, a deadline's text) the command that reads the file
// says.

#include <string>
#include <vector>

#include "common/json.hpp"
#include "serve/choices.hpp"

namespace ganymede::serve {

/// compare: sweep on a study. plan: plan on a request. generate: images from a checkpoint.
enum class JobKind { compare, plan, generate };
std::string_view to_string(JobKind kind);
JobKind read_job_kind(const JsonNode& node);

struct Form {
  JobKind kind = JobKind::compare;
  std::string title;  ///< for people
  std::string input;  ///< the job's input.json
};

/// ConfigError located in the form.
Form read_form(const JsonNode& form, const Checkpoints& checkpoints);

/// The program's arguments for a job in whose folder `input`, the content of its input.json, lies. A checkpoint that
/// has gone is a ConfigError.
std::vector<std::string> arguments_of(JobKind kind, const std::string& input, const Checkpoints& checkpoints,
                                      int cores);

}  // namespace ganymede::serve
