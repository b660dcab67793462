#include "kernel/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <system_error>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/random.hpp"

namespace ganymede::kernel {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "GANYCKP1";
constexpr std::size_t kCheckpointPrefix = kMagic.size() + sizeof(std::uint64_t);
constexpr std::size_t kKeptCheckpoints = 2;
static_assert(std::endian::native == std::endian::little, "the sum is copied as it stands");

std::string file_name(std::int64_t step) { return fmt::format("step-{:012}.ckpt", step); }

void make_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw ConfigError(fmt::format("{}: cannot be made: {}", directory.string(), error.message()));
}

/// The step of a file that save_checkpoint named; nothing for a user's own copy of one, whatever it is called.
std::optional<std::int64_t> step_of(const std::string& name) {
  std::int64_t step = -1;
  if (!name.starts_with("step-")) return std::nullopt;
  std::from_chars(name.data() + 5, name.data() + name.size(), step);
  return step >= 0 && name == file_name(step) ? std::optional(step) : std::nullopt;
}

/// The directory's checkpoint files by step, the newest first.
std::map<std::int64_t, fs::path, std::greater<>> files_in(const fs::path& directory) {
  std::map<std::int64_t, fs::path, std::greater<>> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error))
    if (const auto step = step_of(entry->path().filename().string())) files.emplace(*step, entry->path());
  return files;
}

SafeTensors read_checkpoint(const fs::path& file) {
  const std::string bytes = read_file(file);
  if (bytes.size() < kCheckpointPrefix || !bytes.starts_with(kMagic))
    throw ConfigError(fmt::format("{}: found no checkpoint, expected one that begins with {}", file.string(), kMagic));
  std::uint64_t sum = 0;
  std::memcpy(&sum, bytes.data() + kMagic.size(), sizeof sum);
  const std::string_view content = std::string_view(bytes).substr(kCheckpointPrefix);
  if (sum != fnv1a(content))
    throw ConfigError(fmt::format("{}: found another checksum than the file's own: it is damaged", file.string()));
  return parse_safetensors(content, file.string());
}

}  // namespace

const std::string& Metadata::text(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) throw ConfigError(fmt::format("{}: \"{}\" is missing in its metadata", file_, key));
  return found->second;
}

std::int64_t Metadata::number(const std::string& key, std::int64_t min) const {
  std::int64_t value = -1;
  const std::string& digits = text(key);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < min) refuse(key);
  return value;
}

RandomStream::State Metadata::state(const std::string& key) const {
  RandomStream::State state{};
  const std::string& words = text(key);
  for (std::size_t i = 0; i < state.size(); ++i) {
    const char* begin = words.data() + 17 * i;
    if (words.size() != 67 || std::from_chars(begin, begin + 16, state[i], 16).ptr != begin + 16) refuse(key);
  }
  return state;
}

void Metadata::expect(const std::string& key, const std::string& expected) const {
  if (text(key) != expected)
    throw ConfigError(fmt::format("{}: found a checkpoint of {} {}, expected {}", file_, key, text(key), expected));
}

void Metadata::refuse(const std::string& key) const {
  throw ConfigError(fmt::format("{}: \"{}\" of its metadata is \"{}\"", file_, key, text(key)));
}

std::string write_checkpoint(const SafeTensors& content) {
  const std::string tensors = write_safetensors(content);
  const std::uint64_t sum = fnv1a(tensors);
  std::string bytes(kMagic);
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return bytes + tensors;
}

void check_checkpoint_directory(const fs::path& directory) {
  make_directory(directory);
  check_writable(directory / file_name(0));
}

void save_checkpoint(const fs::path& directory, std::int64_t step, const SafeTensors& content) {
  make_directory(directory);
  write_file(directory / file_name(step), write_checkpoint(content));
  const auto files = files_in(directory);
  // Files of later steps stay: the training resumed before them, because they are damaged.
  auto file = std::next(files.find(step));
  for (std::size_t kept = 1; file != files.end(); ++file, ++kept) {
    std::error_code error;
    if (kept >= kKeptCheckpoints) fs::remove(file->second, error);  // a file that cannot be removed does no harm
  }
}

std::optional<Checkpoint> last_checkpoint(const fs::path& directory, std::vector<std::string>& remarks) {
  const auto files = files_in(directory);
  for (const auto& [step, file] : files) {
    try {
      return Checkpoint{file.string(), read_checkpoint(file)};
    } catch (const ConfigError& damaged) {
      remarks.emplace_back(damaged.what());
    }
  }
  if (files.empty()) return std::nullopt;
  throw ConfigError(remarks.back());
}

bool has_checkpoints(const fs::path& directory) { return !files_in(directory).empty(); }

}  // namespace ganymede::kernel
