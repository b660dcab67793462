#include "exports/mlflow_checkpoint.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/utsname.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/host_inventory.hpp"
#include "common/random.hpp"
#include "kernel/checkpoint.hpp"

namespace ganymede::exports {
namespace {

std::string sha256(const std::string& bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned int length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), sum.data(), &length, EVP_sha256(), nullptr) != 1)
    throw Failure("OpenSSL has no SHA-256");
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", sum[i]);
  return text;
}

/// The commit of the work tree of the working directory; empty outside of a work tree and without git.
std::string git_commit() {
  struct Close {
    void operator()(std::FILE* pipe) const { ::pclose(pipe); }
  };
  const std::unique_ptr<std::FILE, Close> pipe(::popen("git rev-parse HEAD 2>/dev/null", "r"));
  std::array<char, 128> line{};
  if (pipe == nullptr || std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return "";
  std::string commit(line.data());
  commit.erase(commit.find_last_not_of('\n') + 1);
  const bool hexadecimal = commit.find_first_not_of("0123456789abcdef") == std::string::npos;
  return hexadecimal && commit.size() >= 40 ? commit : "";
}

std::string system_name() {
  utsname name{};
  return ::uname(&name) == 0 ? fmt::format("{} {} {}", name.sysname, name.release, name.machine) : "unknown";
}

}  // namespace

MlflowModel mlflow_model(const std::string& directory, const std::string& name, const std::string& uri) {
  std::vector<std::string> damaged;
  const auto found = kernel::last_checkpoint(directory, damaged);
  if (!found)
    throw ConfigError(fmt::format(
        "--checkpoint: {}: found no checkpoint, expected a directory that ganymede train --checkpoint wrote",
        directory));
  const std::string bytes = read_file(found->file);
  MlflowModel model;
  model.file = std::filesystem::absolute(found->file).lexically_normal().string();
  model.uri = uri;
  model.sha256 = sha256(bytes);
  const auto tag = [&](const std::string& key, const std::string& value) {
    if (!value.empty()) model.tags.emplace_back("ganymede." + key, value);
  };
  for (const auto& [key, value] : found->content.metadata)
    for (const char* kept : {"model", "image", "batch", "seed", "ema", "loss", "d-steps", "data", "steps", "epoch"})
      if (key == kept) tag("train." + key, value);
  tag("fnv1a", fmt::format("{:016x}", fnv1a(bytes)));
  tag("git_commit", git_commit());
  tag("version", GANYMEDE_VERSION);
  tag("system", system_name());
  tag("compiler", __VERSION__);
  const HostInventory host = take_host_inventory();
  tag("processor", host.processor.model);
  for (const std::string& gpu : host.graphics.devices) tag("gpu", gpu);
  tag("gpu_driver", host.graphics.driver.value_or(""));
  for (const HostDependency& library : host.dependencies)
    if (library.found) tag("library." + library.name, library.detail);
  model.name = name.empty() ? "ganymede-" + found->metadata().text("model") : name;
  return model;
}

}  // namespace ganymede::exports
