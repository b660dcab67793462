#include "kernel/ops/cuda/algorithm_choices.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <system_error>
#include <utility>

#include "common/file.hpp"
#include "common/json_value.hpp"
#include "kernel/data/dataset.hpp"

namespace ganymede::kernel {
namespace {

using Json = OrderedJson;

constexpr std::string_view kFormat = "ganymede-convolutions/1";

void warn(const std::filesystem::path& file, const std::string& what) {
  fmt::print(stderr, "ganymede: {}: {}; the algorithms of convolutions are timed again\n", file.string(), what);
}

/// Throws what Json throws if `entry` is no list of timed algorithms.
std::vector<TimedAlgorithm> algorithms_of(const Json& entry) {
  std::vector<TimedAlgorithm> all;
  for (const Json& one : entry)
    all.push_back({one.at("algorithm").get<int>(), one.at("math").get<int>(), one.at("repeats").get<bool>(),
                   one.at("us").get<double>() * 1e-6});
  return all;
}

}  // namespace

void FileChoices::read() {
  std::error_code ignored;
  if (std::exchange(was_read_, true) || !std::filesystem::exists(file_, ignored)) return;
  int foreign = 0;
  try {
    const Json content = Json::parse(read_file(file_));
    if (content.at("format").get<std::string>() != kFormat) return warn(file_, "found another format");
    for (const auto& [key, entry] : content.at("choices").items()) {
      try {
        all_[key] = algorithms_of(entry);
      } catch (const JsonError&) {
        all_.erase(key);
        ++foreign;
      }
    }
  } catch (const std::exception& error) {
    return warn(file_, fmt::format("cannot be read: {}", error.what()));
  }
  if (foreign > 0) warn(file_, fmt::format("{} entries cannot be read", foreign));
}

std::vector<TimedAlgorithm> FileChoices::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  read();
  const auto found = all_.find(key);
  return found != all_.end() ? found->second : std::vector<TimedAlgorithm>();
}

void FileChoices::keep(const std::string& key, const std::vector<TimedAlgorithm>& timed) {
  const std::lock_guard lock(mutex_);
  read();
  all_[key] = timed;
  Json choices = Json::object();
  for (const auto& [name, algorithms] : all_)
    for (const TimedAlgorithm& one : algorithms)
      choices[name].push_back(
          {{"algorithm", one.number}, {"math", one.math}, {"repeats", one.repeats}, {"us", one.seconds * 1e6}});
  try {
    std::filesystem::create_directories(file_.parent_path());
    write_file(file_, Json{{"format", kFormat}, {"choices", choices}}.dump(1) + "\n");
  } catch (const std::exception& error) {
    warn(file_, fmt::format("cannot be written: {}", error.what()));
  }
}

AlgorithmChoices& kept_choices() {
  static FileChoices choices(cache_directory() / "convolutions.json");
  return choices;
}

}  // namespace ganymede::kernel
