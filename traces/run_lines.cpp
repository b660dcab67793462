#include "traces/run_lines.hpp"

#include <algorithm>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"
#include "traces/line_scanner.hpp"
#include "traces/pace_points.hpp"

namespace ganymede::traces {

std::string records_as_lines(std::string text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool array = begin != text.npos && text[begin] == '[' && text.find('{', begin) != text.npos;
  const bool history = begin != text.npos && text[begin] == '{' && text.find("\"log_history\"") != text.npos;
  if (!array && !history) return text;
  try {
    const JsonNode document = JsonNode::parse(text, "");
    const Json& whole = document.value();
    const Json& records = array ? whole : whole.at("log_history");
    if (!records.is_array()) return text;
    std::string lines;
    for (const Json& record : records)
      if (record.is_object()) lines += record.dump() + '\n';
    return lines;
  } catch (const ConfigError&) {
    return text;  // lines of a log may begin with a bracket
  }
}

std::optional<ProgressBars::Bar> ProgressBars::bar_of(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  LineScanner in(text);
  std::string label(text.substr(0, text.find_first_of(kDigits)));
  std::erase(label, ' ');  // which align the percents
  if (!in.skip_past("%|") || !in.skip_past("| ")) return std::nullopt;
  in.skip_blanks();
  const auto next_count = [&](std::string_view end) -> std::optional<double> {  // also in thousands, as "1.00k"
    const std::string_view word = in.word_until(end);
    const bool is_count = !word.empty() && kDigits.find(word.front()) != word.npos;
    return is_count && word.find_first_not_of("0123456789.kM") == word.npos ? count_of(word) : std::nullopt;
  };
  const auto done = next_count("/");
  if (!done || !in.skip("/")) return std::nullopt;
  const auto all = next_count(" [");
  if (!all || !(*all > 0) || !in.skip(" [")) return std::nullopt;
  double seconds = 0;
  do {  // minutes and seconds, hours before them after an hour
    const auto part = parse_number<double>(in.digits());
    if (!part) return std::nullopt;
    seconds = 60 * seconds + *part;
  } while (in.skip(":"));
  return in.skip("<") ? std::optional(Bar{*done, *all, seconds, std::move(label)}) : std::nullopt;
}

std::vector<std::pair<double, double>> ProgressBars::read(std::string_view line) {
  std::vector<std::pair<double, double>> found;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find('\r'), line.size());
    const auto bar = bar_of(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
    if (!bar || (all_ > 0 && (bar->all != all_ || bar->label != last_.label))) continue;
    if (bar->done < last_.done && last_.done >= last_.all) before_ += last_.all, seconds_before_ += last_.seconds;
    all_ = bar->all, last_ = *bar;
    found.emplace_back(before_ + bar->done, seconds_before_ + bar->seconds);
  }
  return found;
}

}  // namespace ganymede::traces
