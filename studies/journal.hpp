#pragma once
// What a sweep has kept of its runs while it went on: a result a line.

#include <filesystem>
#include <map>
#include <string>

#include "studies/study.hpp"
#include "studies/summary.hpp"

namespace ganymede {

/// A run's result in one line, and what the summary needs of it.
struct Landed {
  std::string line;
  RunFacts facts;
};

/// The results of an earlier, interrupted sweep, by scenario hash; none if there is no such file. A line that is no
/// whole result is left out and told to `check.dropped`, but for a last one that was cut short.
std::map<std::string, Landed> read_journal(const std::filesystem::path& journal, const JournalCheck& check);

}  // namespace ganymede
