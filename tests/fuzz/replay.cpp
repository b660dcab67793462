// Reads the corpus of each target and some changed inputs, without libFuzzer: what every build can do.
//
//   fuzz_replay CORPUS INPUTS [TARGET...]     so many changed inputs of each
//   fuzz_replay CORPUS SECONDSs [TARGET...]   changed inputs of each for so many seconds, as in 60s
//   fuzz_replay --growth CORPUS INPUTS [TARGET...]   so many inputs of each that are made longer and longer
//   (growth.hpp) fuzz_replay --targets                     the names, each with the files of its reader
//
// prints how many inputs each target has read. What is changed follows from GANYMEDE_FUZZ_SEED (1). A crash, or ten
// seconds of a processor for one input, ends it and leaves the input in the file `fuzz-input-TARGET`.

#include <fmt/format.h>
#include <sys/time.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>

#include "common/file.hpp"
#include "growth.hpp"
#include "target.hpp"

namespace ganymede::fuzz {
namespace {

/// Some bytes replaced, removed, repeated or taken from another input.
std::string changed_bytes(std::string text, const std::string& other, RandomStream& random) {
  static constexpr std::string_view kTelling[] = {"\0", "\xff", "-",  "1e999", "99999999999999999999", "nan", "\"",
                                                  "{",  "\n",   "\t", ","};
  for (std::uint64_t changes = 1 + random.below(4); changes > 0; --changes) {
    const std::size_t at = random.below(text.size() + 1);
    const std::size_t length = std::min<std::size_t>(random.below(16), text.size() - at);
    switch (random.below(5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kTelling[random.below(std::size(kTelling))]);
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(random.below(256));
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      default:
        if (!other.empty()) text.insert(at, other.substr(random.below(other.size()), 1 + random.below(64)));
    }
  }
  return text;
}

std::vector<std::string> corpus_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const auto& file : files) texts.push_back(read_file(file));
  return texts;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// How many changed inputs are read, and for how long at most.
struct Effort {
  std::uint64_t inputs = 0;
  std::chrono::seconds time = std::chrono::hours{24};
};

std::optional<Effort> effort_of(std::string_view text) {
  const bool timed = text.ends_with('s');
  const auto number = number_in(timed ? text.substr(0, text.size() - 1) : text);
  if (!number) return std::nullopt;
  if (!timed) return Effort{.inputs = *number};
  return Effort{std::numeric_limits<std::uint64_t>::max() / 2,
                std::chrono::seconds(std::min<std::uint64_t>(*number, 86400))};
}

/// SIGVTALRM ends the program when an input has taken this long, in seconds of a processor.
void limit_time_of_input() {
  const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = 10, .tv_usec = 0}};
  setitimer(ITIMER_VIRTUAL, &limit, nullptr);
}

void replay(const Target& target, const std::filesystem::path& folder, const Effort& effort, std::uint64_t seed) {
  const std::vector<std::string> corpus = corpus_of(folder / target.name);
  expect(!corpus.empty(), "a corpus of each target");
  std::vector<std::string> all = corpus;
  for (const Borrowed& row : target.borrows)
    for (const std::string& text : corpus_of(folder / row.corpus)) all.push_back(fmt::format("{}\n{}", row.line, text));
  const std::string input = fmt::format("fuzz-input-{}", target.name);
  RandomStream random(seed, target.name);
  const auto begun = std::chrono::steady_clock::now();
  const std::uint64_t most = corpus.size() + effort.inputs / target.slow;
  std::uint64_t read = 0;
  for (; read < most && std::chrono::steady_clock::now() - begun < effort.time; ++read) {
    std::string text = corpus[read % corpus.size()];
    if (read >= corpus.size()) {
      if (!target.borrows.empty()) text = all[random.below(all.size())];
      const std::string changed = changed_by(target, text, random);
      text = changed.empty() ? changed_bytes(text, corpus[random.below(corpus.size())], random) : changed;
    }
    std::ofstream(input, std::ios::binary) << text;
    limit_time_of_input();
    try_input(target, text);
  }
  std::filesystem::remove(input);
  fmt::print("{}: {} inputs\n", target.name, read);
}

}  // namespace
}  // namespace ganymede::fuzz

int main(int argc, char** argv) {
  using namespace ganymede::fuzz;
  if (argc == 2 && std::string_view(argv[1]) == "--targets") {
    print_targets();
    return 0;
  }
  if (argc == 2 && std::string_view(argv[1]) == "--check-growth") {
    check_growth();
    return 0;
  }
  const bool grows = argc > 1 && std::string_view(argv[1]) == "--growth";
  if (grows) --argc, ++argv;
  const std::optional<Effort> effort = argc < 3 ? std::nullopt : effort_of(argv[2]);
  const char* named = std::getenv("GANYMEDE_FUZZ_SEED");
  const std::optional<std::uint64_t> seed = number_in(named == nullptr ? "1" : named);
  if (!effort || !seed) {
    fmt::print(stderr,
               "usage: fuzz_replay CORPUS INPUTS|SECONDSs [TARGET...]\n       fuzz_replay --growth CORPUS INPUTS "
               "[TARGET...]\n       fuzz_replay --targets\n"
               "INPUTS, SECONDS and GANYMEDE_FUZZ_SEED are whole numbers\n");
    return 2;
  }
  int superlinear = 0;
  for (const Target& row : targets()) {
    if (argc > 3 && std::find(argv + 3, argv + argc, row.name) == argv + argc) continue;
    if (grows)
      superlinear += report_growth(row, corpus_of(std::filesystem::path(argv[1]) / row.name), effort->inputs, *seed);
    else
      replay(row, argv[1], *effort, *seed);
  }
  return superlinear == 0 ? 0 : 1;
}
