#include "kernel/parallel/same_values.hpp"

#include <fmt/format.h>

#include "common/errors.hpp"
#include "common/random.hpp"

namespace ganymede::kernel {
namespace {

/// A number by which texts can be told apart, and which is exact as a double.
double option_number(const std::string& text) {
  constexpr unsigned kBitsOfADouble = 53;
  return static_cast<double>(fnv1a(text) >> (64U - kBitsOfADouble));
}

}  // namespace

void check_same_values(const NamedValues& values, Communicator& communicator) {
  const auto [rank, ranks] = communicator.shard();
  // A row for each process; the others' rows are zeros here, so that the sum has all of them.
  std::vector<double> table(values.size() * static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < values.size(); ++i)
    table[static_cast<std::size_t>(rank) * values.size() + i] = option_number(values[i].second);
  communicator.sum(table);
  for (std::size_t at = values.size(); at < table.size(); ++at)
    if (const std::size_t i = at % values.size(); table[at] != table[i])
      throw ConfigError(
          fmt::format("{}: rank {} was started with another value than rank 0 (here: \"{}\"), expected the "
                      "same in all processes of a training",
                      values[i].first, at / values.size(), values[i].second));
}

}  // namespace ganymede::kernel
