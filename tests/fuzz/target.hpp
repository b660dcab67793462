#pragma once
// Fuzz targets: for each reader of foreign input a function that reads bytes and may refuse them, but must neither
// crash nor hang nor throw what no caller expects. tools/fuzz.sh runs them under libFuzzer; replay.cpp runs the corpus
// and a few changed inputs wherever the tests run.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/random.hpp"

namespace ganymede::fuzz {

/// Inputs that another target's corpus gives: each of its files behind this first line.
struct Borrowed {
  std::string_view corpus, line;
};

struct Target {
  std::string_view name;     ///< also the folder of its corpus
  std::string_view sources;  ///< of the reader, whose lines are counted; separated by spaces
  void (*read)(std::string_view bytes);
  std::string_view schema = "";  ///< in docs/schemas, by which inputs are changed; empty: byte by byte
  std::uint64_t slow = 1;        ///< the tests read so many times fewer changed inputs
  /// Changes an input in place of the schema; empty: byte by byte.
  std::string (*change)(std::string_view text, RandomStream& random) = nullptr;
  std::span<const Borrowed> borrows = {};  ///< what is changed besides its own corpus
};

// One list a file targets_*.cpp.
std::vector<Target> trace_targets();
std::vector<Target> platform_targets();
std::vector<Target> kernel_targets();
std::vector<Target> simulation_targets();
std::vector<Target> plan_targets();
std::vector<Target> serve_targets();
std::vector<Target> command_targets();

const std::vector<Target>& targets();
/// Throws std::out_of_range for an unknown name.
const Target& target(std::string_view name);

/// Prints the name of each, a tab and the files of its reader.
void print_targets();

/// Reads the input. What a program's main function turns into a message is an answer; any other exception ends the
/// process. With the environment variable GANYMEDE_FUZZ_SAY the reason of a refusal is printed.
void try_input(const Target& target, std::string_view bytes);

/// A file that holds the bytes, for readers that take a path. Every call replaces the content of the one before.
std::filesystem::path file_of(std::string_view bytes);

/// A folder with the files that scenarios and clusters may name: recordings, the table of a policy that learns, jobs,
/// and the scenario of a workload.
const std::filesystem::path& folder_of_scenarios();

/// Fails, and says what was expected, if `holds` is false.
void expect(bool holds, std::string_view what);

/// What the target says of changes: by its function, or its schema. Empty if the bytes are to be changed.
std::string changed_by(const Target& target, std::string_view text, RandomStream& random);

/// A JSON text changed where the schema says what may stand there: members are added, removed and replaced, numbers and
/// texts moved to and over their bounds. Empty if the text is no JSON.
std::string changed_by_schema(std::string_view text, std::string_view schema, RandomStream& random);

/// Prints the words of the schema as a dictionary of libFuzzer; nothing if it is empty.
void print_dictionary(std::string_view schema);

}  // namespace ganymede::fuzz
