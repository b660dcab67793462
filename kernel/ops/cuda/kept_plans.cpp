#include "kernel/ops/cuda/kept_plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <system_error>
#include <utility>

#include "common/file.hpp"
#include "common/random.hpp"
#include "kernel/data/dataset.hpp"

namespace ganymede::kernel {
namespace {

/// The content of a file. cuDNN 9.19 does not notice a changed byte in a plan's machine code, so the text has a
/// checksum.
std::string content_of(const std::string& key, const std::string& text) {
  return fmt::format("{}\n{:016x}\n{}", key, fnv1a(text), text);
}

}  // namespace

std::filesystem::path FolderPlans::file_of(const std::string& key) const {
  return folder_ / fmt::format("{:016x}.plan", fnv1a(key));
}

std::string FolderPlans::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const std::filesystem::path file = file_of(key);
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return {};
  try {
    const std::string content = read_file(file);
    const std::size_t at =
        content.find('\n', std::min(content.size(), key.size() + 1)) + 1;  // 0: there is no second line
    const std::string text = content.substr(at);
    return content == content_of(key, text) ? text : std::string();
  } catch (const std::exception&) {
    return {};
  }
}

void FolderPlans::keep(const std::string& key, const std::string& text) {
  const std::lock_guard lock(mutex_);
  try {
    std::filesystem::create_directories(folder_);
    write_file(file_of(key), content_of(key, text));
  } catch (const std::exception& error) {
    if (std::exchange(has_warned_, true)) return;
    fmt::print(stderr, "ganymede: {}; cuDNN's plans are compiled again in the next training\n", error.what());
  }
}

KeptPlans& kept_plans() {
  static FolderPlans plans(cache_directory() / "cudnn-plans");
  return plans;
}

}  // namespace ganymede::kernel
