#pragma once
// The words, units and times of bills: see bill_file.hpp.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ganymede::traces {

/// "2026-11-01 00:00:00", "2026-11-01T00:00:00.000Z" or "2026-11-01T00:00:00+05:00"; without a zone it is UTC.
std::optional<std::int64_t> time_of_bill(std::string text);

/// True if the text has the word as one of its own: "p3.2xlarge" is no part of "p3.2xlarge2" or "xp3.2xlarge", nor
/// "NC6" of "NC6 v3". Points, dashes, low lines and blanks are the same within words: bills write "A2 highgpu 4g".
bool has_word(const std::string& text, const std::string& word);

/// Hours of a machine in one of a unit in small letters: "hrs", "100 hours", "minutes", "instance-hours". 0 for what is
/// no time of a machine: "gibibyte hour", "vcpu-hours".
double hours_of(std::string_view unit);

/// The words of a row that tell its kind of charge, in small letters.
struct ChargeWords {
  std::string kind, service, usage, unit, category;
};

/// By the kind of the charge, else by what was used: AWS's types of usage are the most exact.
std::string kind_of_charge(const ChargeWords& of);

/// The text up to the end of its first row that is not empty; quoted cells may hold line breaks.
std::string_view first_row(std::string_view text);

}  // namespace ganymede::traces
