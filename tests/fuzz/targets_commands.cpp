// Whole commands in this process, with their options and a document together.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "cli/program.hpp"
#include "common/errors.hpp"
#include "target.hpp"

namespace ganymede::fuzz {
namespace {

/// Only commands and options that write nothing but standard output, and start no program.
constexpr std::string_view kCommands[] = {"simulate", "plan", "allreduce", "report",
                                          "export",   "fits", "import",    "schema"};
constexpr std::string_view kOptions[] = {
    "--set",      "--format", "--seed",   "--jobs",          "--fidelity", "--catalog", "--instance",   "--nodes",
    "--scheme",   "--bytes",  "--groups", "--late",          "--model",    "--gpu",     "--batch",      "--images",
    "--deadline", "--budget", "--region", "--gpus-per-node", "--market",   "--seeds",   "--collective", "--tolerance"};

template <class List>
bool among(const List& list, const std::string& word) {
  return std::find(std::begin(list), std::end(list), std::string_view(word).substr(0, word.find('='))) !=
         std::end(list);
}

/// Standard output and error go nowhere while it lives.
class Silence {
 public:
  Silence() {
    std::fflush(nullptr);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (const int stream : {1, 2}) ::dup2(nowhere, stream);
    ::close(nowhere);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  ~Silence() {
    std::fflush(nullptr);
    for (const int stream : {1, 2}) ::dup2(kept_[stream - 1], stream);
    for (const int kept : kept_) ::close(kept);
  }

 private:
  int kept_[2] = {::dup(1), ::dup(2)};
};

/// The first line holds the words, of which FILE stands for the rest.
void run_command(std::string_view bytes) {
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::string_view document = bytes.substr(std::min(end + 1, bytes.size()));
  std::istringstream line{std::string(bytes.substr(0, end))};
  std::vector<std::string> words;
  for (std::string word; line >> word;) {
    const bool safe = words.empty()           ? among(kCommands, word)
                      : word.starts_with('-') ? among(kOptions, word)
                                              : word.find('/') == word.npos || words.back() == "--set";
    if (!safe || words.size() > 20) throw ConfigError("not a command that is tried here");
    words.push_back(word == "FILE" ? file_of(document).string() : word);
  }
  // A policy or a scheduler of the user's own is a program, which would be started.
  if (document.find("external") != document.npos || bytes.substr(0, end).find("external") != bytes.npos)
    throw ConfigError("a program of the user's own");
  for (const char* word : {"--quiet", "--max-work", "100k", "--max-memory", "1GiB"}) words.emplace_back(word);
  int code = 0;
  {
    const Silence silence;
    code = cli::run_command_line(words);
  }
  expect(code == 0 || (code >= 2 && code <= 4), "an exit code that no child's crash and no library's exception gives");
}

}  // namespace

std::vector<Target> command_targets() {
  return {{.name = "command",
           .sources = "cli/simulate.cpp cli/plan.cpp cli/allreduce.cpp cli/program.cpp sim/run/run_simulation.cpp "
                      "sim/cluster/cluster_simulation.cpp",
           .read = run_command,
           .slow = 10}};
}

}  // namespace ganymede::fuzz
