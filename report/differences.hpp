#pragma once
// The differences between two results, or between two plans: time, money, carbon and utilization, and the inputs that
// differ. Everything is read from the documents.

#include <string>
#include <vector>

#include "documents/difference.hpp"
#include "report/documents.hpp"
#include "report/table.hpp"

namespace ganymede::report {

/// By how much a quantity may grow, for example cost by at most a tenth.
struct GrowthLimit {
  std::string what;  ///< "time", "cost" or "carbon"
  double most = 0;   ///< share of the value before: 0.1 is 10 %
};

/// Reads limits such as "+10%" (time and cost) and "cost=+10%,carbon=+5%". Throws ConfigError for anything else.
std::vector<GrowthLimit> read_growth_limits(const std::vector<std::string>& texts);

/// Compares two documents, both results or both plans. `held` is false if a quantity grew by more than its limit.
/// Throws ConfigError with file and JSON pointer for documents of different kinds, for a missing or wrong member, and
/// for a limit on a quantity that a document does not know.
documents::Difference differences_of(const Document& before, const Document& after,
                                     const std::vector<GrowthLimit>& limits);

/// As tables that fit `width` columns.
std::string differences_text(const documents::Difference& differences, std::size_t width = kAnyWidth);
/// The same as Markdown, for a pull request. Text of the documents is escaped.
std::string differences_markdown(const documents::Difference& differences);

}  // namespace ganymede::report
