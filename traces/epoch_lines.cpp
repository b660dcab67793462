#include "traces/epoch_lines.hpp"

#include <cctype>

#include "common/plain_text.hpp"
#include "traces/line_scanner.hpp"
#include "traces/run_lines.hpp"

namespace ganymede::traces {
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

/// Seconds of a step: the mean of "Time 0.300 (0.290)", "Batch Time 300.0 (290.0) ms" or "time: 0.30s (0.29s)", but not
/// of "Data time 0.001 (0.002)".
std::optional<double> mean_step_time(std::string_view lower) {
  for (std::size_t at = lower.find("time"); at != lower.npos; at = lower.find("time", at + 1)) {
    const std::size_t last = lower.substr(0, at).find_last_not_of(" _-");
    const std::string_view before = lower.substr(0, last == lower.npos ? 0 : last + 1);
    bool is_step = before.empty() || !std::isalpha(static_cast<unsigned char>(before.back()));
    for (const std::string_view word : {"batch", "step", "iter", "train"}) is_step |= before.ends_with(word);
    if (!is_step) continue;
    LineScanner in(lower.substr(at + 4));
    const auto unit = [&in] {
      in.skip_blanks();
      return in.skip("ms") ? 1e-3 : in.skip("s") ? 1.0 : 0.0;
    };
    in.skip(":");
    in.skip_blanks();
    const auto now = leading_number(in.rest());
    if (!now) continue;
    in = LineScanner(now->second);
    double scale = unit();
    in.skip_blanks();
    if (!in.skip("(")) continue;
    in.skip_blanks();
    const auto mean = leading_number(in.rest());
    if (!mean) continue;
    in = LineScanner(mean->second);
    if (const double inside = unit(); inside > 0) scale = inside;
    if (!in.skip(")")) continue;
    if (scale == 0) scale = unit();
    return mean->first * (scale > 0 ? scale : 1);
  }
  return std::nullopt;
}

/// The numbers of "epoch [3/25] step 100/1583" and the like; the rest of the line is before and behind them.
struct EpochPart {
  double epoch = 0, done = 0, all = 0;
  bool from_zero = false;  ///< the form of programs whose first epoch is 0
  std::string_view before, behind;
};

/// Reads the numbers of an epoch and within it. Images and samples, "[6400/60000 (11%)]", are no steps.
std::optional<EpochPart> epoch_numbers(LineScanner& in, bool named) {
  EpochPart out;
  out.from_zero = !named || in.rest().starts_with(": [");
  if (named) {
    in.skip("(train)");
    skip_separators(in);
  } else if (!in.skip("[")) {
    return std::nullopt;
  }
  const auto epoch = next_number(in);
  if (!epoch || (in.skip("/") ? !next_number(in) : !named)) return std::nullopt;
  if (!named && !in.rest().starts_with("][")) return std::nullopt;
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
  out.epoch = *epoch, out.done = *done, out.all = *all, out.behind = in.rest();
  in.skip_blanks();
  for (const char* word : {"samples", "images", "examples"})
    if (in.skip(word)) return std::nullopt;
  if (!in.skip("(")) return out;
  in.skip_blanks();
  const auto share = leading_number(in.rest());
  if (share && share->second.starts_with("%")) return std::nullopt;
  return out;
}

std::optional<EpochPart> epoch_part(std::string_view lower) {
  const bool named = lower.find("epoch") != lower.npos;
  for (std::size_t at = lower.find(named ? "epoch" : "["); at != lower.npos; at = lower.find('[', at + 1)) {
    LineScanner in(lower.substr(named ? at + 5 : at));
    if (auto part = epoch_numbers(in, named)) {
      part->before = lower.substr(0, at);
      // "[3/25][100/1583]" begins the line or stands behind a time, and is not of a test.
      constexpr std::string_view kTime = "0123456789-/:.,+tz[] ";
      if (named || part->before.find_first_not_of(kTime) == lower.npos) return part;
    }
    if (named) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

void EpochLines::count_from(double epoch, double done, double all, bool from_zero) {
  if (epoch_ < 0) first_ = epoch <= 1 ? epoch : from_zero ? 0 : 1;
  if (epoch_ < 0 || epoch <= epoch_) return;
  // A count that does not fall when the epoch rises goes on through all epochs, unless it is at an epoch's end.
  if (done < within_)
    falls_ = true, goes_on_ = false;
  else if (done > within_ && done < all && !falls_)
    goes_on_ = true;
}

std::optional<EpochLines::Progress> EpochLines::steps(std::string_view line) {
  const std::string lower = lower_case(std::string(line));
  const auto part = epoch_part(lower);
  if (!part) return std::nullopt;
  // A step of the line's own counts, wherever it stands.
  if (!named_counts(part->before).empty() || !named_counts(part->behind).empty()) return std::nullopt;
  if (LineScanner in(part->before); in.skip_past("rank")) {  // "[rank0] Epoch: ...", of which the first counts
    skip_separators(in);
    const auto rank = next_number(in);
    if (rank && rank_ && rank_ != rank) return std::nullopt;
    rank_ = rank ? rank : rank_;
  }
  const bool went_on = goes_on_;
  count_from(part->epoch, part->done, part->all, part->from_zero);
  const bool afresh = went_on != goes_on_ && epoch_ != first_;  // the first epoch is counted either way
  if (part->epoch > epoch_ && epoch_ >= 0)                      // with the steps behind the last line of an epoch
    before_ = seconds_ + mean_ * ((part->epoch - epoch_) * length_ - within_);
  else if (part->epoch != epoch_)
    before_ = seconds_;
  epoch_ = part->epoch, within_ = part->done, length_ = part->all;
  Progress out{(goes_on_ ? 0 : (part->epoch - first_) * part->all) + part->done, {}, afresh};
  if (const auto mean = mean_step_time(part->behind)) {
    mean_ = *mean;
    if (goes_on_) before_ = 0;
    seconds_ = before_ + mean_ * part->done;
    out.seconds = seconds_;
  }
  return out;
}

std::optional<EpochLines::Progress> EpochLines::ended(std::string_view line) {
  if (line.starts_with("Epoch ")) epoch_begins_ = true;
  if (const auto samples = line.starts_with("Train on ") ? number_behind(line, "on ") : std::nullopt)
    samples_ = *samples;
  LineScanner in(line.substr(line.find_last_of("\r\b") + 1));  // over which the last state of a bar is written
  in.skip_blanks();
  const auto done = next_number(in);
  if (!done || !in.skip("/") || next_number(in) != done || !in.skip(" ")) return std::nullopt;
  const bool drawn = in.skip_past("\u2501 ") || in.skip_past("] ");
  if (!in.skip("- ") && !drawn) return std::nullopt;
  const auto seconds = next_number(in);
  if (!seconds || !in.skip("s") || !in.skip_blank()) return std::nullopt;
  if (*done == samples_ || in.rest().find("/sample") != line.npos) return std::nullopt;  // no steps: TensorFlow 1
  // The first bar of an epoch says how long it is; one before all epochs is of an evaluation.
  const bool afresh = epoch_begins_ && !of_epoch_ && *done > 1 && length_ > 0 && *done != length_;
  if (afresh) count_ = seconds_ = 0;
  if (afresh || (length_ == 0 && *done > 1)) length_ = *done, of_epoch_ = epoch_begins_;
  if (*done != length_) return std::nullopt;  // of predict(), which a loop of one's own calls
  count_ += *done, seconds_ += *seconds;
  return Progress{count_, seconds_, afresh};
}

std::optional<EpochLines::Progress> EpochLines::images(std::string_view line) {
  if (!line.starts_with("(epoch: ")) return std::nullopt;
  const auto epoch = number_behind(line, "epoch: "), within = number_behind(line, "iters: ");
  const auto each = number_behind(line, "time: ");
  if (!epoch || !within || !each) return std::nullopt;
  // An epoch or images within it that are not above the last ones are of a training that was set back.
  while (!images_.empty() && std::pair(images_.back().epoch, images_.back().within) >= std::pair(*epoch, *within))
    images_.pop_back();
  const Images last = images_.empty() ? Images{-1, 0, 0, 0} : images_.back();
  // Lines are as many images apart at an epoch's end as within it.
  if (*epoch == last.epoch) gap_ = *within - last.within;
  const double more = *epoch == last.epoch ? *within - last.within : images_.empty() || gap_ == 0 ? *within : gap_;
  images_.push_back({*epoch, *within, last.count + more, last.seconds + more * *each});
  return Progress{images_.back().count, images_.back().seconds};
}

}  // namespace ganymede::traces
