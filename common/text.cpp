#include "common/text.hpp"

#include <algorithm>

namespace ganymede {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// The least number of insertions, deletions, substitutions and swaps of neighbouring characters that turn one word
/// into the other (optimal string alignment distance).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const auto& candidate : candidates) {
    const std::size_t longer = std::max(word.size(), candidate.size());
    const std::size_t close_enough = std::max<std::size_t>(1, longer / 3);
    const bool begun = word.size() >= 3 && word.size() < candidate.size() && candidate.starts_with(word) &&
                       candidate[word.size()] == '-';
    // A word may be a whole file; what differs in length by more cannot be close.
    if (!begun && longer - std::min(word.size(), candidate.size()) > close_enough) continue;
    const std::size_t distance = begun ? 0 : edit_distance(word, candidate);
    if (distance <= close_enough && (!best || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto close = nearest(word, candidates);
  return close ? "; did you mean \"" + *close + "\"?" : "";
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += "\"" + names[i] + "\"";
  }
  return text.empty() ? "nothing" : text;
}

std::string counted(std::size_t number, std::string_view what) {
  return std::to_string(number) + " " + std::string(what) + (number == 1 ? "" : "s");
}

std::string with_thousands(std::int64_t number) {
  std::string out = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = out.size(); at > first + 3;) out.insert(at -= 3, ",");
  return out;
}

}  // namespace ganymede
