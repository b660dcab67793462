#include "traces/run_lines.hpp"

#include <algorithm>

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
    for (std::size_t i = 2; i + 1 < text.size(); i += 2) {
      const char low = text[i + (little ? 0 : 1)], high = text[i + (little ? 1 : 0)];
      out += high == 0 && static_cast<unsigned char>(low) < 0x80 ? low : '?';
    }
  } else {
    out = text;
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

std::optional<std::pair<std::string, double>> fid_of(std::string_view lower) {
  constexpr std::string_view kName = "abcdefghijklmnopqrstuvwxyz0123456789_-/";
  for (std::size_t at = lower.find("fid"); at != lower.npos;) {
    const std::size_t end = std::min(lower.find_first_not_of(kName, at), lower.size());
    const std::size_t begin = std::min(lower.find_first_not_of(" :=", end), lower.size());
    const std::string_view name = lower.substr(at, end - at), text = lower.substr(begin);
    const auto value = parse_number<double>(text.substr(0, text.find_first_not_of("0123456789.")));
    const bool is_name = (at == 0 || kName.substr(0, 26).find(lower[at - 1]) == kName.npos) &&
                         name.substr(name.rfind('/') + 1).find("fid") != name.npos;  // no "fid-full-50k/mean"
    if (is_name && value && *value > 0) return std::pair(std::string(name), *value);
    at = lower.find("fid", end);
  }
  return std::nullopt;
}

std::optional<ProgressBars::Bar> ProgressBars::bar_of(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  LineScanner in(text);
  const std::size_t digit = std::min(text.find_first_of(kDigits), text.size());
  std::string label(text.substr(0, digit));
  std::erase(label, ' ');  // which align the percents
  LineScanner behind(text.substr(digit));
  std::string number(behind.digits());
  if (behind.skip("%")) number.clear();
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
  return in.skip("<") ? std::optional(Bar{*done, *all, seconds, std::move(label), std::move(number)}) : std::nullopt;
}

std::vector<std::pair<double, double>> ProgressBars::read(std::string_view line) {
  std::vector<std::pair<double, double>> found;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find('\r'), line.size());
    const auto bar = bar_of(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
    if (!bar || (all_ > 0 && (bar->all != all_ || bar->label != last_.label))) continue;
    const bool again = bar->done < last_.done || (bar->done == last_.done && bar->number != last_.number);
    if (again && last_.done >= last_.all) before_ += last_.all, seconds_before_ += last_.seconds;
    all_ = bar->all, last_ = *bar;
    found.emplace_back(before_ + bar->done, seconds_before_ + bar->seconds);
  }
  return found;
}

namespace {

std::optional<double> next_number(LineScanner& in) { return parse_number<double>(in.digits()); }

void skip_separators(LineScanner& in) {
  while (in.skip_blank() || in.skip("[") || in.skip("]") || in.skip(":") || in.skip(",") || in.skip("|") ||
         in.skip("("))
    continue;
}

/// The number, in digits with a point, behind a word, or nothing.
std::optional<double> number_behind(std::string_view line, std::string_view word) {
  LineScanner in(line);
  if (!in.skip_past(word)) return std::nullopt;
  in.skip_blanks();
  const std::string_view rest = in.rest();
  return parse_number<double>(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

}  // namespace

std::optional<EpochLines::Progress> EpochLines::steps(std::string_view line) {
  const std::string lower = lower_case(std::string(line));
  LineScanner in(lower);
  const bool named = in.skip_past("epoch");
  if (named) {
    in.skip("(train)");
    skip_separators(in);
  } else if (!in.skip("[")) {  // "[3/25][100/1583]" alone
    return std::nullopt;
  }
  const auto epoch = next_number(in);
  if (!epoch || (in.skip("/") ? !next_number(in) : !named)) return std::nullopt;
  skip_separators(in);
  for (const char* word : {"step", "batch", "iteration", "iter"})
    if (in.skip(word)) break;
  skip_separators(in);
  const auto done = next_number(in);
  in.skip_blanks();
  if (!done || !in.skip("/")) return std::nullopt;
  in.skip_blanks();
  const auto all = next_number(in);
  if (!all || *done > *all || !(*all > 0)) return std::nullopt;
  if (epoch_ < 0) first_ = std::min(*epoch, 1.0);
  if (*epoch != epoch_) before_ = seconds_;
  epoch_ = *epoch;
  Progress out{(*epoch - first_) * *all + *done, {}};
  LineScanner time(lower);
  if (time.skip_past("time") && number_behind(time.rest(), "(")) {
    seconds_ = before_ + *number_behind(time.rest(), "(") * *done;
    out.seconds = seconds_;
  }
  return out;
}

std::optional<EpochLines::Progress> EpochLines::ended(std::string_view line) {
  LineScanner in(line.substr(line.find_last_of("\r\b") + 1));  // over which the last state of a bar is written
  in.skip_blanks();
  const auto done = next_number(in);
  if (!done || !in.skip("/") || next_number(in) != done || !in.skip(" ")) return std::nullopt;
  const bool drawn = in.skip_past("\u2501 ") || in.skip_past("] ");
  if (!in.skip("- ") && !drawn) return std::nullopt;
  const auto seconds = next_number(in);
  if (!seconds || !in.skip("s") || !in.skip_blank()) return std::nullopt;
  if (length_ == 0 && *done > 1) length_ = *done;
  if (*done != length_) return std::nullopt;  // of predict(), which a loop of one's own calls
  count_ += *done, seconds_ += *seconds;
  return Progress{count_, seconds_};
}

std::optional<EpochLines::Progress> EpochLines::images(std::string_view line) {
  if (!line.starts_with("(epoch: ")) return std::nullopt;
  const auto epoch = number_behind(line, "epoch: "), within = number_behind(line, "iters: ");
  const auto each = number_behind(line, "time: ");
  if (!epoch || !within || !each) return std::nullopt;
  // Lines are as many images apart at an epoch's end as within it.
  if (*epoch == epoch_ && *within > within_) gap_ = *within - within_;
  const double more = *epoch == epoch_ || gap_ == 0 ? *within - (*epoch == epoch_ ? within_ : 0) : gap_;
  epoch_ = *epoch, within_ = *within;
  count_ += more, seconds_ += more * *each;
  return Progress{count_, seconds_};
}

}  // namespace ganymede::traces
