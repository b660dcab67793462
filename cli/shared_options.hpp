#pragma once
// Options that several commands have, and the names that shell completions offer for one.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"
#include "kernel/train.hpp"
#include "rehearsal/local_hosts.hpp"
#include "sim/scenario/scenario.hpp"
#include "studies/shards.hpp"

namespace ganymede::cli {

/// A validator for an option's check() that accepts everything and is not shown in the help. The words of `spec` are
/// names, "@TOPIC" for the names of a topic, "@files" if files are offered too, and "@list" if the value is a list with
/// commas. For example "builtin @files". Topics are those of `ganymede list`, and rented-gpus (of the catalogs, with
/// their families), sheets (GPUs whose kernel times are known), studies, layers, planned (models of `plan`), losses and
/// topics.
Check suggest(const std::string& spec);

struct Suggestion {
  bool any = false;  ///< the validator is one of suggest()
  std::vector<std::string> names;
  bool files = false, list = false;
};
/// The suggestions of the validator of that name; nothing if suggest() did not make it.
Suggestion read_suggestion(const std::string& validator_name);

/// The quantity that an option's text says, from `low` to `high`. Throws ConfigError, which names the option and what
/// is `expected`, for any other text.
template <class Q>
Q quantity_of(const char* option, const std::string& text, Q low, Q high, const char* expected);

/// Models that `plan --model` takes: those with a recorded trace, then the lists of layers.
std::vector<std::string> planned_models();

/// The topics of `ganymede list`, and the names of one topic without their summaries. Both are defined in cli/list.cpp.
std::vector<std::string> listed_topics();
std::vector<std::string> listed_names(std::string_view topic);

// The options with which a user states a step that was measured by hand, of simulate, sweep and plan.

struct MeasuredOptions {
  std::string step, gpu;
  double images_per_second = 0;  ///< 0: not given
  std::int64_t batch = 0;        ///< images on a GPU; 0: not given
};

/// Declares --step, --images-per-second and --on.
void add_measured(Parser command, MeasuredOptions& options);
/// Declares --batch, for commands that do not have it for itself.
void add_measured_batch(Parser command, MeasuredOptions& options);

/// The replacements in a scenario, study or request that the options ask for. Throws ConfigError if some of the options
/// are missing.
std::vector<JsonOverride> measured_overrides(const MeasuredOptions& options);

// Options that say on which device the kernel runs, and of which model, for all commands that run it.

/// Declares --backend, --precision, --no-graph and --threads. Sets the backend to "auto", its default here.
void add_device_options(Parser command, kernel::TrainOptions& options);

/// Throws ConfigError if `model`, which is to be trained, is only a list of layers, and says what can be done with it.
void check_trainable(const std::string& model);

// Options of commands that start processes on this machine which stand for hosts.

/// Declares --hosts, --scale, --network and --loss.
void add_hosts(Parser command, rehearsal::HostsChoice& choice);

// --shard: which part of some work this process does.

using studies::read_shard;

/// Declares --shard.
void add_shard(Parser command, std::string& shard);

/// The options that shards of all commands share: children, progress, remarks, and an early end on SIGTERM.
studies::ShardOptions shard_options(const Shared& shared, const std::string& what);

/// Says what the shard has done, and sets the exit code if it was stopped early. Throws Failure if runs failed.
void report_shard(Shared& shared, const studies::Shard& shard, const studies::ShardOutcome& outcome);

/// Throws ConfigError unless -o names the folder of the shards.
void require_folder(const Shared& shared);

// How old prices are today, in words. Results do not say it, because they are the same on any day.

/// The day of GANYMEDE_NOW, or today, as YYYY-MM-DD.
std::string today();
/// Remarks on the age of a price of that date (YYYY-MM-DD; anything else is passed over) if that is above a month.
void remark_price_age(const Shared& shared, const std::string& date);
/// The same for the oldest price of the scenario's pools, leaving out those of machines of the user's own.
void remark_price_age(const Shared& shared, const sim::Scenario& scenario);

}  // namespace ganymede::cli
