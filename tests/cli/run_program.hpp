#pragma once
// Runs the program as a user does, and gives tests its exit code and both outputs.

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "common/random.hpp"

namespace ganymede::cli {

/// A temporary directory of one test, which is removed at the end of the test.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "ganymede-cli-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return (path_ / name).string();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator{}));
  }

 private:
  std::filesystem::path path_;
};

inline std::string content_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

/// Runs the program with these arguments. `launcher` is a command that starts it, for example "mpirun -n 2".
inline Outcome run_program(const std::string& arguments, const std::string& launcher = "",
                           const std::string& program = GANYMEDE_BINARY) {
  const Scratch scratch;
  // Hides all GPUs, because these tests expect the numbers of the CPU; and stops the calendar, because plans expect the
  // age that prices had when they were written.
  const std::string command = "CUDA_VISIBLE_DEVICES= GANYMEDE_NOW=2026-11-20T12:00:00Z " + launcher + " " + program +
                              " " + arguments + " > " + (scratch / "out").string() + " 2> " +
                              (scratch / "err").string() + " < /dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content_of(scratch / "out"),
          content_of(scratch / "err")};
}

/// Makes each row of a shard's file that holds a result hold that of the first, with a right checksum.
inline void give_rows_the_first_text(const std::filesystem::path& file) {
  std::string first, changed;
  std::istringstream lines(content_of(file));
  for (std::string line; std::getline(lines, line);) {
    std::string row = line.substr(17);
    if (const std::size_t at = row.find("\tr\t"); at != std::string::npos) {
      if (first.empty()) first = row.substr(at + 3);
      row = row.substr(0, at + 3) + first;
    }
    changed += fmt::format("{:016x}\t{}\n", fnv1a(row), row);
  }
  std::ofstream(file, std::ios::binary) << changed;
}

}  // namespace ganymede::cli
