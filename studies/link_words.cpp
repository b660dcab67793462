#include "studies/link_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "common/plain_text.hpp"
#include "common/printable.hpp"

namespace ganymede::studies {
namespace {

/// The line of the log about a place, without what is not printable.
std::string line_at(const std::string& text, std::size_t at) {
  constexpr std::size_t kShown = 160;
  const std::size_t begin = text.rfind('\n', at) + 1, end = std::min(text.find_first_of("\r\n", at), text.size());
  return printable(end - begin <= kShown ? text.substr(begin, end - begin)
                                         : text.substr(at, std::min(kShown, end - at)));
}

/// The degrees that a value leaves to this collective; nothing if it has none of the cause's values.
std::optional<std::vector<double>> degrees_of(std::string_view value, const LinkCause& cause,
                                              std::string_view collective) {
  std::vector<bool> named(cause.values.size());
  bool excludes = false;
  while (!value.empty()) {
    std::string_view part = value.substr(0, value.find(';'));
    value.remove_prefix(std::min(part.size() + 1, value.size()));
    if (const std::size_t colon = part.find(':'); colon != part.npos) {
      if (part.substr(0, colon) != collective) continue;
      part.remove_prefix(colon + 1);
    }
    excludes = excludes || part.starts_with('^');
    while (!part.empty()) {
      part.remove_prefix(part.starts_with('^') ? 1 : 0);
      const std::string_view name = part.substr(0, part.find(','));
      part.remove_prefix(std::min(name.size() + 1, part.size()));
      const auto at = std::find(cause.values.begin(), cause.values.end(), name);
      if (at != cause.values.end()) named[static_cast<std::size_t>(at - cause.values.begin())] = true;
    }
  }
  if (std::find(named.begin(), named.end(), true) == named.end()) return std::nullopt;
  std::vector<double> left;
  for (std::size_t i = 0; i < cause.degrees.size(); ++i)
    if (named[i] != excludes) left.push_back(cause.degrees[i]);
  return left;
}

}  // namespace

int nics_of(const std::string& text) {
  const auto rest_of_line = [&](std::string_view after) -> std::string {
    const std::size_t at = text.find(after);
    if (at == std::string::npos) return "";
    const std::string rest = text.substr(at + after.size(), 2000);
    return rest.substr(0, rest.find_first_of(";\n"));
  };
  int count = 0;
  const std::string used = rest_of_line("NET/IB : Using ");
  for (std::size_t at = 0; (at = used.find('[', at)) != std::string::npos; ++at)
    count += at + 1 < used.size() && used[at + 1] >= '0' && used[at + 1] <= '9' ? 1 : 0;
  if (count > 0) return count;
  for (const char* variable : {"NCCL_IB_HCA=", "NCCL_IB_HCA set to ", "NCCL_IB_HCA set by environment to "})
    if (const std::string names = rest_of_line(variable); !names.empty() && names[0] != '^' && names.find("mlx5_") == 0)
      return 1 + static_cast<int>(std::count(names.begin(), std::find(names.begin(), names.end(), ' '), ','));
  return 0;
}

std::string line_with(const std::string& text, const std::vector<std::string_view>& words, std::string_view lacks) {
  for (const std::string_view word : words)
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      const std::size_t begin = text.rfind('\n', at) + 1, end = std::min(text.find_first_of("\r\n", at), text.size());
      if (lacks.empty() || text.substr(begin, end - begin).find(lacks) == std::string::npos) return line_at(text, at);
    }
  return "";
}

Allowed allowed_by(const std::string& text, const LinkCause& cause, std::string collective) {
  std::erase_if(collective, [](char c) { return c == '-' || c == '_'; });
  for (const auto& [words, means] : cause.settings)
    for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
      const std::string_view rest = std::string_view(text).substr(at + words.size());
      std::string value(means);
      for (const std::string_view verb : {"=", " set by environment to ", " set to "}) {
        if (!means.empty() || !rest.starts_with(verb)) continue;
        constexpr std::size_t kLongest = 200;
        for (const char c : lower_case(std::string(rest.substr(verb.size(), kLongest)))) {
          if (c == '"' || c == '\'') continue;
          if (!std::isalnum(static_cast<unsigned char>(c)) &&
              std::string_view(",;:^").find(c) == std::string_view::npos)
            break;
          value += c;
        }
      }
      if (const auto degrees = degrees_of(value, cause, collective)) return {line_at(text, at), *degrees};
    }
  return {};
}

std::string said_of(const LinkCause& cause, const std::vector<double>& degrees) {
  std::string names;
  for (std::size_t i = 0; i < cause.degrees.size(); ++i)
    if (std::find(degrees.begin(), degrees.end(), cause.degrees[i]) != degrees.end())
      names += fmt::format("{}{}", names.empty() ? "" : " or ", cause.values[i]);
  return fmt::format("NCCL may use only {} here, which is slower than its own choice", names);
}

}  // namespace ganymede::studies
