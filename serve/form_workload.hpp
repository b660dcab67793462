#pragma once
// The parts of a form that say what is trained and where: workload, platforms, goals. Each is checked here, so that the
// page can show what is wrong beside the field before there is a job.

#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/json_value.hpp"
#include "serve/form_options.hpp"

namespace ganymede::serve {

inline constexpr std::int64_t kMaxFormImages = 1'000'000'000'000;
inline constexpr std::int64_t kMaxFormGpus = 65'536;

/// A file that is put into the folder of a job beside its input, which names it.
struct JobInput {
  std::string name, text;
};

/// The offers, and the files that the form needs as far as it was read.
struct FormReading {
  const Offer& offer;
  std::vector<JobInput> files{};
};

struct FormWorkload {
  OrderedJson content;
  std::string title;
};

/// Reads { "trace", "batch_per_gpu", "dataset", "epochs" ... , "measured" }.
FormWorkload read_form_workload(const JsonNode& node, bool steps_allowed, FormReading& reading);

/// The name of a catalog for the input file: a provider's, or that of a file among `reading.files`.
std::string read_form_catalog(const JsonNode& node, FormReading& reading);
/// The platform that the form calls so. Precondition: read_form_catalog() has accepted the name.
const platforms::Platform& form_platform(const std::string& name, const Offer& offer);
/// Reads one of the platforms to compare: a region, and a GPU or an instance with a price there.
OrderedJson read_form_platform(const JsonNode& node, FormReading& reading);

/// Copies "deadline" and "budget", checked, to `to`. A deadline that is a time is allowed if `times` is true.
void read_form_goals(JsonObject& in, bool times, OrderedJson& to);

}  // namespace ganymede::serve
