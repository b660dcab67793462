#include "traces/run_lines.hpp"

#include <algorithm>
#include <boost/locale/encoding_utf.hpp>
#include <cctype>
#include <cmath>

#include "common/errors.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"
#include "common/plain_text.hpp"
#include "traces/line_scanner.hpp"
#include "traces/pace_points.hpp"

namespace ganymede::traces {

std::string without_colours(const std::string& text) {
  std::string out;
  const bool little = text.starts_with("\xff\xfe"), big = text.starts_with("\xfe\xff");
  if (little || big) {
    std::u16string units;
    for (std::size_t i = 2; i + 1 < text.size(); i += 2) {
      const auto low = static_cast<unsigned char>(text[i + (little ? 0 : 1)]);
      const auto high = static_cast<unsigned char>(text[i + (little ? 1 : 0)]);
      units += static_cast<char16_t>(high * 256 + low);
    }
    out = boost::locale::conv::utf_to_utf<char>(units);  // what is no UTF-16 is left out
  } else {
    out = text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text;
  }
  if (out.find('\x1b') == out.npos) return out;
  std::string plain;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] != '\x1b') {
      plain += out[i];
    } else if (i + 1 < out.size() && out[i + 1] == '[') {  // up to the letter that ends the sequence
      for (i += 2; i < out.size() && (out[i] < '@' || out[i] > '~');) ++i;
    }
  }
  return plain;
}

std::string records_as_lines(std::string text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool array = begin != text.npos && text[begin] == '[' && text.find('{', begin) != text.npos;
  const bool history = begin != text.npos && text[begin] == '{' && text.find("\"log_history\"") != text.npos;
  if (!array && !history) return text;
  try {
    const JsonNode document = JsonNode::parse(text, "");
    const Json& whole = document.value();
    if (!array && !(whole.is_object() && whole.contains("log_history"))) return text;
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

std::string without_nan(std::string line) {
  for (const std::string_view word : {"-Infinity", "Infinity", "NaN"})
    for (std::size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
      const char before = at == 0 ? 'x' : line[at - 1];
      const char after = at + word.size() < line.size() ? line[at + word.size()] : 'x';
      if (std::string_view(" :[,").find(before) != std::string_view::npos &&
          std::string_view(" ,]}").find(after) != std::string_view::npos)
        line.replace(at, word.size(), "null");
    }
  return line;
}

std::optional<double> spelt_time(std::string_view text) {
  double sum = 0;
  LineScanner in(text);
  for (bool any = false;; any = true) {
    in.skip_blanks();
    const auto value = parse_number<double>(in.digits());
    if (!value) return any ? std::optional(sum) : std::nullopt;
    const double unit = in.skip("d") ? 86400 : in.skip("h") ? 3600 : in.skip("m") ? 60 : in.skip("s") ? 1 : 0;
    if (unit == 0) return std::nullopt;
    sum += unit * *value;
  }
}

std::optional<double> bracketed(std::string_view text) {
  LineScanner in(text);
  if (!in.skip_past("[")) return std::nullopt;
  in.skip_blanks();
  const auto number = parse_number<double>(in.digits());
  return in.skip("]") ? number : std::nullopt;
}

bool is_best(std::string_view lower) {
  for (const std::string_view word : {"best", "lowest", "min", "minimum"})
    for (std::size_t at = lower.find(word); at != lower.npos; at = lower.find(word, at + 1)) {
      const bool begins = at == 0 || lower[at - 1] < 'a' || lower[at - 1] > 'z';
      const std::size_t end = at + word.size();
      if (begins && (end == lower.size() || lower[end] < 'a' || lower[end] > 'z')) return true;
    }
  return false;
}

std::optional<std::pair<double, std::string_view>> leading_number(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  if (end < text.size() && text[end] == 'e') {
    std::size_t digit = end + 1;
    if (digit < text.size() && (text[digit] == '+' || text[digit] == '-')) ++digit;
    if (digit < text.size() && kDigits.find(text[digit]) != kDigits.npos)
      end = std::min(text.find_first_not_of(kDigits, digit), text.size());
  }
  const auto number = parse_number<double>(text.substr(0, end));
  return number ? std::optional(std::pair(*number, text.substr(end))) : std::nullopt;
}

std::optional<std::pair<std::string, double>> fid_of(std::string_view lower) {
  constexpr std::string_view kName = "abcdefghijklmnopqrstuvwxyz0123456789_-/", kBefore = " _-/.";
  for (std::size_t at = lower.find("fid"); at != lower.npos;) {
    const std::size_t end = std::min(lower.find_first_not_of(kName, at), lower.size());
    const std::size_t begin = std::min(lower.find_first_not_of(" :=", end), lower.size());
    const std::string_view name = lower.substr(at, end - at);
    // The word before, as of "best FID: 11.1": the best so far is not that of this step.
    const std::size_t last = lower.substr(0, at).find_last_not_of(kBefore);
    const std::string_view before = lower.substr(0, last == lower.npos ? 0 : last + 1);
    const std::size_t gap = before.find_last_not_of(kName.substr(0, 26));
    const auto value = leading_number(lower.substr(begin));
    const bool is_name = (at == 0 || kName.substr(0, 26).find(lower[at - 1]) == kName.npos) &&
                         name.substr(name.rfind('/') + 1).find("fid") != name.npos;  // no "fid-full-50k/mean"
    if (is_name && value && value->first > 0 && !is_best(name) && !is_best(before.substr(gap + 1)))
      return std::pair(std::string(name), value->first);
    at = lower.find("fid", end);
  }
  return std::nullopt;
}

std::vector<NamedCount> named_counts(std::string_view line) {
  std::vector<NamedCount> found;
  const std::string rest = lower_case(std::string(line));
  for (const auto& [word, unit] :
       {std::pair<std::string_view, double>{"kimg", 1e3}, {"images", 1}, {"step", 0}, {"iteration", 0}, {"iter", 0}})
    for (std::size_t at = rest.find(word); at != rest.npos; at = rest.find(word, at + 1)) {
      LineScanner in(std::string_view(rest).substr(at + word.size()));
      in.skip("s");
      in.skip("(train)");
      while (in.skip_blank() || in.skip("=") || in.skip(":") || in.skip("[") || in.skip("#")) continue;
      const auto count = count_of(line.substr(line.size() - in.rest().size()));
      const bool is_part = at > 0 && (rest[at - 1] == '/' || std::isalpha(static_cast<unsigned char>(rest[at - 1])));
      if (!count || is_part || (unit < 1e3 && *count != std::floor(*count))) continue;
      found.push_back({*count * (unit > 0 ? unit : 1), unit > 0});
    }
  return found;
}

std::optional<ProgressBars::Bar> ProgressBars::bar_of(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  std::string rank;
  std::size_t digit = std::min(text.find_first_of(kDigits), text.size());
  if (const std::string before = lower_case(std::string(text.substr(0, digit)));
      before.ends_with("rank") || before.ends_with("rank ") || before.ends_with("[default")) {
    LineScanner behind(text.substr(digit));
    rank = behind.digits();
    text = behind.rest();
    text.remove_prefix(std::min(text.find_first_not_of("]:| "), text.size()));
    digit = std::min(text.find_first_of(kDigits), text.size());
  }
  LineScanner in(text);
  std::string label(text.substr(0, digit));
  std::erase(label, ' ');  // which align the percents
  LineScanner behind(text.substr(digit));
  std::string number(behind.digits());
  if (behind.skip("%") || lower_case(label).find("epoch") == label.npos) number.clear();
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
  return in.skip("<") ? std::optional(Bar{*done, *all, seconds, std::move(label), std::move(number), std::move(rank)})
                      : std::nullopt;
}

std::vector<std::pair<double, double>> ProgressBars::read(std::string_view line) {
  std::vector<std::pair<double, double>> found;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find('\r'), line.size());
    const auto bar = bar_of(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
    if (!bar || (all_ > 0 && (bar->all != all_ || bar->label != last_.label || bar->rank != last_.rank))) continue;
    const bool again = bar->done < last_.done || (bar->done == last_.done && bar->number != last_.number);
    if (again && last_.done >= last_.all) before_ += last_.all, seconds_before_ += last_.seconds;
    if (all_ == 0 && bar->done == bar->all) found.emplace_back(0, 0);  // only full bars were kept
    all_ = bar->all, last_ = *bar;
    found.emplace_back(before_ + bar->done, seconds_before_ + bar->seconds);
  }
  return found;
}

}  // namespace ganymede::traces
