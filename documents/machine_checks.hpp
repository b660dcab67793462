#pragma once
// Whether a training fits the memory of GPUs, `ganymede.fits/1`.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_fwd.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

inline constexpr std::string_view kFitsSchema = "ganymede.fits/1";

/// Bytes of one kind, such as "activations".
struct FitsKind {
  std::string name;
  double bytes = 0;
};

/// The memory of a GPU at a batch.
struct FitsMemory {
  double bytes = 0;
  Interval interval;
};

struct FitsGpu {
  std::string gpu;
  double memory = 0;
  int largest_batch = 0;                  ///< that fits for sure; 0: none
  int perhaps_batch = 0;                  ///< that is expected to fit
  std::optional<FitsMemory> at_batch;     ///< the memory at the document's batch; none if no batch was given
  std::optional<std::string> at_verdict;  ///< "fits", "perhaps" or "no"
};

struct Fits {
  std::string model, trace, precision, how;
  int batch = 0;  ///< whose memory is shown by kind
  bool several_gpus = false;
  double allocated = 0;
  std::vector<FitsKind> kinds;
  FitsMemory total;
  std::vector<FitsGpu> gpus;
};

void describe(Walk& walk, Fits& fits);
std::string fits_text(const Fits& fits);

// Whether measured collectives are as fast as their machine should make them, `ganymede.link-check/1`.

inline constexpr std::string_view kLinkCheckSchema = "ganymede.link-check/1";

struct CheckedSize {
  double bytes = 0, measured = 0, expected = 0;
  Interval interval;
  double measured_bus = 0, expected_bus = 0;
};

/// A possible fault, and how well it explains the times.
struct LikelyCause {
  std::string cause, says, shows;
  double share = 0, against_normal = 0;
  std::optional<double> bus = {};
  std::string sign = {};  ///< the line of the log that speaks for it; "": none
};

struct LinkCheck {
  std::string verdict, log, collective, scheme, catalog, instance, recognised, links;
  int nodes = 1, gpus_per_node = 1;
  double ratio = 1;
  Interval interval;
  std::vector<CheckedSize> sizes;
  std::vector<LikelyCause> causes;
  std::vector<std::string> notes;
};

void describe(Walk& walk, LinkCheck& check);
std::string link_check_text(const LinkCheck& check);

// Why several GPUs are slower than one of them times their number, `ganymede.why-slow/1`.

inline constexpr std::string_view kWhySlowSchema = "ganymede.why-slow/1";

/// A part of a step.
struct SlowShare {
  std::string part, says;
  double seconds = 0, share = 0;
};

/// A possible cause, and what mending it would bring.
struct SlowCause {
  std::string cause, says, shows;
  double probability = 0;
  std::optional<double> rate = {};         ///< images/s that it explains
  std::optional<double> mended = {};       ///< images/s once it is mended
  std::optional<double> saved_hours = {};  ///< of `images`
  std::optional<double> saved_usd = {};
};

struct WhySlow {
  std::string verdict, catalog, instance, recognised, of;
  int gpus = 1, nodes = 1, batch = 0;
  double parameters = 0, images = 0;
  double one = 0, all = 0, efficiency = 0, expected = 0;
  Interval interval;
  double usd_per_hour = 0;
  std::vector<SlowShare> shares;
  std::vector<SlowCause> causes;
  std::vector<std::string> notes;
};

void describe(Walk& walk, WhySlow& answer);
std::string why_slow_text(const WhySlow& answer);

}  // namespace ganymede::documents
