#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "common/printable.hpp"
#include "studies/task_file.hpp"
#include "studies/task_offers.hpp"

namespace ganymede::studies {
namespace {

std::optional<int> count_of(const std::string& text) {
  const auto value = parse_number<int>(text);
  return value && *value >= 0 && *value <= kMostAskedNodes ? value : std::nullopt;
}

/// "days-hours:minutes:seconds", "hours:minutes:seconds", "minutes:seconds" or minutes.
std::optional<Seconds> slurm_time(const std::string& text) {
  const std::size_t dash = text.find('-');
  std::vector<double> parts;
  std::istringstream stream(dash == std::string::npos ? text : text.substr(dash + 1));
  for (std::string part; std::getline(stream, part, ':');) {
    const auto count = count_of(part);
    if (!count) return {};
    parts.push_back(*count);
  }
  const auto days = dash == std::string::npos ? std::optional<int>(0) : count_of(text.substr(0, dash));
  if (!days || parts.empty() || parts.size() > 3) return {};
  double seconds = 0;
  if (dash != std::string::npos || parts.size() == 3) {
    parts.resize(3);
    seconds = 3600 * parts[0] + 60 * parts[1] + parts[2];
  } else {
    seconds = 60 * parts[0] + (parts.size() > 1 ? parts[1] : 0);
  }
  return Seconds{86400.0 * *days + seconds};
}

/// The words of a line up to a comment; quotes join what is between them.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  char quote = 0;
  bool in_word = false;
  for (const char sign : line) {
    if (quote != 0 ? sign == quote : sign == '"' || sign == '\'') {
      quote = quote != 0 ? '\0' : sign;
    } else if (quote == 0 && (sign == ' ' || sign == '\t' || sign == '\r')) {
      in_word = false;
      continue;
    } else {
      if (!in_word && sign == '#' && quote == 0) break;
      if (!in_word) words.emplace_back();
      words.back() += sign;
      in_word = true;
      continue;
    }
    if (!in_word) words.emplace_back(), in_word = true;
  }
  return words;
}

bool is_endless(const std::string& time) { return lower_case(time) == "unlimited" || lower_case(time) == "infinite"; }

class SlurmScript {
 public:
  SlurmScript(const std::string& file, const std::string& text) : file_(file) {
    std::istringstream lines(printable(text, "\n\t\r"));
    bool runs = false;  // sbatch reads no options behind the first command
    for (std::string line; std::getline(lines, line);) {
      ++line_;
      if (line.starts_with("#SBATCH")) {
        if (runs)
          out_.notes.push_back(fmt::format("line {}: an #SBATCH behind the first command has no effect", line_));
        else
          take_line(words_of(line.substr(7)));
      }
      runs = runs || line.find_first_not_of(" \t\r") < line.find('#');
    }
  }

  AskedResources asked() {
    if (nodes_ == 0 && tasks_ > 0 && tasks_per_node_ > 0)
      out_.nodes = (tasks_ + tasks_per_node_ - 1) / tasks_per_node_;
    else if (nodes_ == 0 && all_ > 0 && out_.gpus_per_node > 0)
      out_.nodes = (all_ + out_.gpus_per_node - 1) / out_.gpus_per_node;
    if (out_.gpu.empty()) take_feature();
    if (all_ == 0) all_ = a_task_ * (tasks_ > 0 ? tasks_ : std::max(1, tasks_per_node_) * out_.nodes);
    if (out_.gpus_per_node == 0 && all_ > 0) out_.gpus_per_node = std::max(1, (all_ + out_.nodes - 1) / out_.nodes);
    return out_;
  }

 private:
  [[noreturn]] void bad(const char* expected) const {
    throw ConfigError(fmt::format("{}: line {}: {}: found \"{}\", expected {}", file_, line_, name_, value_, expected));
  }

  void take_line(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string& word = words[i];
      const std::size_t sign = word.find('=');
      name_ = word.substr(0, sign), value_ = sign == std::string::npos ? "" : word.substr(sign + 1);
      if (name_.size() > 2 && name_[1] != '-') value_ = word.substr(2), name_.resize(2);
      if (value_.empty() && i + 1 < words.size() && !words[i + 1].starts_with('-')) value_ = words[++i];
      take_option();
    }
  }

  /// The features of a --constraint such as "ib&(a100|h100)" that are GPUs: the first is taken.
  void take_feature() {
    std::vector<std::string> gpus;
    for (std::size_t from = 0; from < feature_.size();) {
      const std::size_t end = std::min(feature_.find_first_of("&|,*()[] ", from), feature_.size());
      const std::string one = feature_.substr(from, end - from);
      if (!one.empty() && !count_of(one) && !gpus_meant(one).empty()) gpus.push_back(one);
      from = end + 1;
    }
    if (gpus.empty()) return;
    out_.gpu = gpus.front();
    if (gpus.size() > 1)
      out_.notes.push_back(fmt::format("--constraint {}: the first GPU is taken, {}", feature_, out_.gpu));
  }

  /// "gpu:a100:8", "a100:8", "gpu:8" or "8"
  int gpus() {
    std::string rest = value_.substr(0, value_.find(','));
    if (rest.starts_with("gpu:")) rest = rest.substr(4);
    if (rest == "gpu") return 1;
    const std::size_t colon = rest.rfind(':');
    if (colon != std::string::npos) out_.gpu = rest.substr(0, colon);
    const std::string last = colon == std::string::npos ? rest : rest.substr(colon + 1);
    if (const auto count = count_of(last.substr(0, last.find('(')))) return *count;
    if (colon == std::string::npos && !rest.empty()) return out_.gpu = rest, 1;
    bad("a number of GPUs");
  }

  int number_of(const char* what) const {
    const auto count = count_of(value_.substr(0, value_.find('-')));
    if (!count || *count < 1) bad(what);
    return *count;
  }

  void take_option() {
    if (name_ == "--nodes" || name_ == "-N") {
      out_.nodes = nodes_ = number_of("a number of nodes");
    } else if (name_ == "--ntasks" || name_ == "-n" || name_ == "--ntasks-per-node") {
      (name_ == "--ntasks-per-node" ? tasks_per_node_ : tasks_) = number_of("a number of tasks");
    } else if (const std::size_t at = ("," + value_).find(",gpu"); name_ == "--gres" && at != std::string::npos) {
      value_.erase(0, at);  // as in "lscratch:100,gpu:v100:4"
      out_.gpus_per_node = gpus();
    } else if (const std::size_t tres = value_.find("gres/gpu");
               name_.starts_with("--tres-per-") && tres != value_.npos) {
      value_.erase(0, tres + 5);  // "gres/gpu:v100:4", or "gres/gpu=4"
      std::replace(value_.begin(), value_.end(), '=', ':');
      (name_ == "--tres-per-task" ? a_task_ : out_.gpus_per_node) = gpus();
    } else if (name_ == "--constraint" || name_ == "-C") {
      feature_ = value_;
    } else if (name_ == "--gpus" || name_ == "-G" || name_ == "--gpus-per-node" || name_ == "--gpus-per-task") {
      (name_ == "--gpus-per-node" ? out_.gpus_per_node : name_ == "--gpus-per-task" ? a_task_ : all_) = gpus();
    } else if ((name_ == "--time" || name_ == "-t") && !is_endless(value_)) {
      out_.time = slurm_time(value_);
      if (!out_.time) bad("a time such as 1-12:00:00");
    }
  }

  const std::string& file_;
  AskedResources out_{.format = "Slurm script", .gpu = ""};
  std::string name_, value_, feature_;
  int line_ = 0, nodes_ = 0, all_ = 0, a_task_ = 0, tasks_ = 0, tasks_per_node_ = 0;
};

}  // namespace

AskedResources read_slurm_script(const std::string& file, const std::string& text) {
  return SlurmScript(file, text).asked();
}

}  // namespace ganymede::studies
