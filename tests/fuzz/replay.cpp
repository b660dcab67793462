// Reads the corpus of each target and some changed inputs, without libFuzzer: what every build can do.
//
//   fuzz_replay CORPUS INPUTS [TARGET...]
//
// prints how many inputs each target has read. A crash leaves the input that caused it in the file `fuzz-input-TARGET`.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>

#include "common/file.hpp"
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

void replay(const Target& target, const std::filesystem::path& folder, std::uint64_t inputs) {
  const std::vector<std::string> corpus = corpus_of(folder / target.name);
  expect(!corpus.empty(), "a corpus of each target");
  const std::string input = fmt::format("fuzz-input-{}", target.name);
  RandomStream random(1, target.name);
  for (std::uint64_t i = 0; i < corpus.size() + inputs; ++i) {
    std::string text = corpus[i % corpus.size()];
    if (i >= corpus.size()) {
      const bool by_schema = !target.schema.empty() && random.below(4) != 0;
      const std::string changed = by_schema ? changed_by_schema(text, target.schema, random) : "";
      text = changed.empty() ? changed_bytes(text, corpus[random.below(corpus.size())], random) : changed;
    }
    std::ofstream(input, std::ios::binary) << text;
    try_input(target, text);
  }
  std::filesystem::remove(input);
  fmt::print("{}: {} inputs\n", target.name, corpus.size() + inputs);
}

}  // namespace
}  // namespace ganymede::fuzz

int main(int argc, char** argv) {
  using namespace ganymede::fuzz;
  if (argc < 3) {
    fmt::print(stderr, "usage: fuzz_replay CORPUS INPUTS [TARGET...]\n");
    return 2;
  }
  std::uint64_t inputs = 0;
  std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), inputs);
  for (const Target& row : targets())
    if (argc == 3 || std::find(argv + 3, argv + argc, row.name) != argv + argc) replay(row, argv[1], inputs / row.slow);
  return 0;
}
