#include "kernel/checkpoint.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <system_error>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/plain_text.hpp"
#include "common/random.hpp"
#include "common/storage.hpp"

namespace ganymede::kernel {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "GANYCKP1";
constexpr std::size_t kCheckpointPrefix = kMagic.size() + sizeof(std::uint64_t);
constexpr std::size_t kKeptCheckpoints = 2;
constexpr const char* kLock = "lock";
static_assert(std::endian::native == std::endian::little, "the sum is copied as it stands");

std::string file_name(std::int64_t step) { return fmt::format("step-{:012}.ckpt", step); }

void make_directory(const fs::path& directory) {
  if (const std::error_code error = storage::make_folders(directory))
    throw ConfigError(fmt::format("{}: cannot be made: {}", directory.string(), error.message()));
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
    if (const auto step = step_of(entry->path().filename().string())) {
      if (!entry->is_regular_file(error))  // reading a pipe or a device might never end
        throw ConfigError(entry->path().string() + ": is no regular file, expected a checkpoint");
      files.emplace(*step, entry->path());
    }
  return files;
}

constexpr std::string_view kHolder = "process ";
constexpr std::size_t kLongestHolder = 200;

/// The lock's content, or as much of it as a holder would have written.
std::string lock_text(int file) {
  std::array<char, kLongestHolder> text{};
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

/// True for a file that a lock's holder wrote, or that is empty or of NULs: a crash may leave one so. Any other is a
/// user's own.
bool is_lock(int file) {
  struct stat info {};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const std::string text = lock_text(file);
  if (text.find_first_not_of('\0') == text.npos) return info.st_size < static_cast<off_t>(kLongestHolder);
  const std::size_t on = std::min(text.find_first_not_of("0123456789", kHolder.size()), text.size());
  return text.starts_with(kHolder) && on > kHolder.size() && text.substr(on).starts_with(" on ") &&
         text.find('\n') == text.size() - 1;
}

/// The line that the lock's holder wrote: "process 4711 on host-a".
std::string holder(int file) {
  std::string line = lock_text(file);
  line.erase(std::find_if(line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c > 0x7e; }), line.end());
  return line.empty() ? "another process" : line;
}

/// True if the open file still has that name.
bool is_at(const std::filesystem::path& path, int file) {
  struct stat named {
  }, open{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(file, &open) == 0 && named.st_ino == open.st_ino &&
         named.st_dev == open.st_dev;
}

}  // namespace

const std::string& Metadata::text(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) throw ConfigError(fmt::format("{}: \"{}\" is missing in its metadata", file_, key));
  return found->second;
}

std::int64_t Metadata::number(const std::string& key, std::int64_t min) const {
  const auto value = parse_number<std::int64_t>(text(key));
  if (!value || *value < min) refuse(key);
  return *value;
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

Checkpoint read_checkpoint(const std::string& file, std::string_view bytes) {
  if (bytes.size() < kCheckpointPrefix || !bytes.starts_with(kMagic))
    throw ConfigError(fmt::format("{}: found no checkpoint, expected one that begins with {}", file, kMagic));
  std::uint64_t sum = 0;
  std::memcpy(&sum, bytes.data() + kMagic.size(), sizeof sum);
  const std::string_view content = bytes.substr(kCheckpointPrefix);
  if (sum != fnv1a(content))
    throw ConfigError(fmt::format("{}: found another checksum than the file's own: it is damaged", file));
  return {file, parse_safetensors(content, file)};
}

std::string write_checkpoint(const SafeTensors& content) {
  const std::string tensors = write_safetensors(content);
  const std::uint64_t sum = fnv1a(tensors);
  std::string bytes(kMagic);
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return bytes + tensors;
}

bool is_name_of_checkpoints(const std::string& name) { return name == kLock || step_of(name); }

void check_checkpoint_directory(const fs::path& directory) {
  make_directory(directory);
  check_writable(directory / file_name(0));
}

void save_checkpoint(const fs::path& directory, std::int64_t step, const SafeTensors& content) {
  make_directory(directory);
  write_file(directory / file_name(step), write_checkpoint(content));
  const auto files = files_in(directory);
  // Files of later steps stay: the training resumed before them, because they are damaged.
  std::size_t kept = 0;
  for (auto file = files.find(step); file != files.end(); ++file)
    if (++kept > kKeptCheckpoints) storage::remove(file->second.c_str());  // one that cannot be removed does no harm
}

std::optional<Checkpoint> last_checkpoint(const fs::path& directory, std::vector<std::string>& remarks) {
  const auto files = files_in(directory);
  for (const auto& [step, file] : files) {
    try {
      return read_checkpoint(file.string(), read_file(file));
    } catch (const ConfigError& damaged) {
      remarks.emplace_back(damaged.what());
    }
  }
  if (files.empty()) return std::nullopt;
  throw ConfigError(remarks.back());
}

bool has_checkpoints(const fs::path& directory) { return !files_in(directory).empty(); }

CheckpointLock::CheckpointLock(const std::filesystem::path& directory) : path_(directory / kLock) {
  do {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (file_ < 0) throw ConfigError(fmt::format("--checkpoint: {}: {}", path_.string(), std::strerror(errno)));
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      const std::string other = holder(file_);
      ::close(file_);
      throw ConfigError(
          fmt::format("--checkpoint: {}: found a training that keeps its checkpoints there and still runs ({}), "
                      "expected a directory of this training's own",
                      directory.string(), other));
    }
    // The last holder may have removed the file between the two calls.
  } while (!is_at(path_, file_) && ::close(file_) == 0);
  if (!is_lock(file_)) {
    ::close(file_);
    throw ConfigError(
        fmt::format("--checkpoint: {}: found a file that no training has written, expected none or the lock of an "
                    "earlier training; "
                    "move it, or give another directory",
                    path_.string()));
  }
  std::array<char, 65> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string line = fmt::format("{}{} on {}\n", kHolder, ::getpid(), host.data());
  // The line is only for messages; on a full disk it is left out.
  if (::ftruncate(file_, 0) == 0) [[maybe_unused]]
    const ssize_t written = ::pwrite(file_, line.data(), line.size(), 0);
}

CheckpointLock::~CheckpointLock() {
  // If someone removed the file meanwhile, another training may hold a new one of that name.
  if (is_at(path_, file_)) ::unlink(path_.c_str());
  ::close(file_);
}

}  // namespace ganymede::kernel
