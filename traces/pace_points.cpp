#include "traces/pace_points.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>

#include "common/plain_text.hpp"

namespace ganymede::traces {

void add_point(RunPace& pace, double count, double seconds) {
  constexpr double kLongest = 1e12;  // seconds
  if (!(count >= 0 && count <= kMostCount && seconds >= -kLongest && seconds <= kLongest)) {
    ++pace.skipped;
    return;
  }
  while (!pace.points.empty() && pace.points.back().count >= count) pace.points.pop_back();
  const double back = pace.points.empty() ? 0 : pace.points.back().seconds - (seconds + pace.set_back_s);
  pace.set_back_s += std::max(back, 0.0);
  pace.points.push_back({count, seconds + pace.set_back_s, back > 0});
}

double LogClock::since_begin(double moment) {
  constexpr double kYear1972 = 63072000, kYear = 366 * 86400.0;  // moment_of takes it for an unsaid year
  if (moment >= kYear1972 && moment < kYear1972 + kYear) {
    if (begin_ && last_ - (moment + years_) > kYear / 2) years_ += kYear;
    moment += years_;
  }
  last_ = moment;
  if (!begin_) begin_ = moment;
  return moment - *begin_;
}

std::optional<double> count_of(std::string_view text) {
  std::string digits(text.substr(0, text.find_first_not_of("0123456789,._eE+")));
  const std::string_view rest = text.substr(digits.size());
  while (!digits.empty() && std::string_view(",._+eE").find(digits.back()) != std::string_view::npos) digits.pop_back();
  std::erase(digits, '_');
  std::size_t most = 3;  // digits before the next comma
  for (std::size_t comma = digits.find(','); comma != digits.npos; comma = digits.find(',', comma)) {
    const std::size_t end = std::min(digits.find_first_not_of("0123456789", comma + 1), digits.size());
    if (end == comma + 4 && comma <= most && digits.find('.') > comma)
      digits.erase(comma, 1);
    else
      digits.resize(comma);
    most = comma + 3;
  }
  const double unit = rest.starts_with('k') || rest.starts_with('K') ? 1e3 : rest.starts_with('M') ? 1e6 : 1;
  const bool is_other = rest.size() > 1 && std::isalpha(static_cast<unsigned char>(rest[1]));  // "1kB"
  const auto number = parse_number<double>(std::string_view(digits));
  if (!number || !std::isfinite(*number)) return std::nullopt;
  return unit > 1 && !is_other ? std::optional(unit * *number) : number;
}

std::optional<double> whole_count_of(std::string_view text) {
  std::string digits(text);
  std::erase_if(digits, [](char c) { return c == ',' || c == '_'; });
  const bool has_unit = !digits.empty() && std::string_view("kKM").find(digits.back()) != std::string_view::npos;
  if (has_unit) digits.pop_back();
  const auto number = parse_number<double>(std::string_view(digits)), count = count_of(text);
  const double unit = !has_unit ? 1 : text.back() == 'M' ? 1e6 : 1e3;
  return number && count == unit * *number ? count : std::nullopt;
}

}  // namespace ganymede::traces
