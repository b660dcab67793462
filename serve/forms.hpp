#pragma once
// Turns what the page posts into an input file of the program. No member of a form is copied unchecked: each is read by
// its type, and what could name a file or a program (a trace, a catalog, a policy) must be an option that
// form_options.hpp offers. What needs the whole of the input (whether the model fits a GPU) is checked by the command
// that reads the file.

#include <cstdint>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/json_value.hpp"
#include "serve/form_options.hpp"

namespace ganymede::serve {

// The parts of a form that say what is trained and where: workload, platforms, goals. Each is checked here, so that the
// page can show what is wrong beside the field before there is a job.

/// A file that is put into the folder of a job beside its input, which names it.
struct JobInput {
  std::string name, text;
};

/// The command of a job. compare: `sweep` of a study; plan: `plan` of a request; generate: images of a checkpoint;
/// train: a training on this machine, with a plan for the clouds.
enum class JobKind { compare, plan, generate, train };
std::string_view to_string(JobKind kind);
inline constexpr const char* kInputFile = "input.json";  ///< a job's input, in its folder
const std::vector<std::string>& kind_names();            ///< of all kinds, in the order of JobKind

struct Form {
  JobKind kind = JobKind::compare;
  std::string title;              ///< for people
  std::string input;              ///< the job's input.json
  std::vector<JobInput> files{};  ///< that the input names
};

/// Reads what the page posts. Throws ConfigError, which names the place in the form, for a value that is not offered
/// and for one of the wrong type.
Form read_form(const JsonNode& form, const Offer& offer);

struct Generation {
  std::string checkpoint;
  std::int64_t count = 1;
  std::uint64_t seed = 1;
};
/// Reads the members of a form that asks for images. Throws ConfigError for a checkpoint that is not one of these.
Generation read_generation(JsonObject& in, const Checkpoints& checkpoints);

/// A training on this machine.
struct Training {
  std::string model;
  std::int64_t batch = 64, steps = 1000;
  std::uint64_t seed = 1;
  std::int64_t images = 0;    ///< for which time and cost on the clouds are predicted
  std::int64_t max_gpus = 1;  ///< that are rented for them
};
Training read_training(JsonObject& in);

}  // namespace ganymede::serve
