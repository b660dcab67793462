#include "common/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "common/errors.hpp"
#include "common/random.hpp"
#include "common/storage.hpp"

namespace ganymede {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{2} << 30U;  // because a device such as /dev/zero never ends

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what) {
  throw ConfigError(fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno)));
}

/// Throws std::runtime_error and not ConfigError, because an error after the file was opened (a full disk, a failing
/// device) is not the user's mistake.
[[noreturn]] void fail_writing(const std::filesystem::path& path) {
  throw std::runtime_error(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

/// The names of temporary files, where remove_unfinished_files finds them.
class Unfinished {
 public:
  /// Remembers the name if one of a few places is free: more files are hardly ever written at once.
  void note(const std::string& path) {
    for (Place& place : places_) {
      if (path.size() >= sizeof place.path || place.taken.test_and_set()) continue;
      std::copy_n(path.c_str(), path.size() + 1, place.path);
      place.whole = true;
      return;
    }
  }
  void forget(const std::string& path) {
    for (Place& place : places_) {
      if (!place.whole || path != place.path) continue;
      place.whole = false;
      place.taken.clear();
    }
  }
  void remove() {
    for (Place& place : places_)
      if (place.whole) ::unlink(place.path);
  }

 private:
  struct Place {
    std::atomic_flag taken;
    std::atomic<bool> whole = false;
    char path[PATH_MAX] = {};
  };
  Place places_[8];
};
constinit Unfinished unfinished;

/// Removes the temporary file unless it was renamed.
struct Temporary {
  std::string path;
  bool keep = true;
  ~Temporary() {
    if (!keep) storage::remove(path.c_str());
    unfinished.forget(path);
  }
};

void write_all(int file, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t wrote = storage::write(file, content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail_writing(path);
    content.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

/// True if the path is a directory. False also if the path cannot be looked up at all (a name that is too long, a file
/// in the place of a folder), because opening it will then say why.
bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

/// What a symbolic link points to, or else the path itself.
std::filesystem::path target_of(const std::filesystem::path& named) {
  std::error_code error;
  return std::filesystem::is_symlink(named, error) ? written_path(named) : named;
}

/// Throws if the path is a directory, which renaming a file onto it cannot replace, or a file that this user may not
/// write: a protected one is not replaced.
void refuse_unwritable(const std::filesystem::path& path) {
  if (path.empty()) throw ConfigError("the name of an output file is empty");
  if (path == "-")
    throw ConfigError("-: found in place of an output file; standard output is /dev/stdout, a file of that name ./-");
  if (is_folder(path)) throw ConfigError(path.string() + ": cannot be written: it is a directory");
  if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0 && (errno == EACCES || errno == ELOOP))
    fail(path, "cannot be written");
  // In a folder such as /tmp nobody may replace a file of another user.
  struct stat file {
  }, folder{};
  const std::filesystem::path target = target_of(path);
  const std::filesystem::path above = target.has_parent_path() ? target.parent_path() : ".";
  const uid_t user = ::geteuid();
  if (::stat(path.c_str(), &file) == 0 && S_ISREG(file.st_mode) && ::stat(above.c_str(), &folder) == 0 &&
      (folder.st_mode & S_ISVTX) != 0 && user != 0 && user != file.st_uid && user != folder.st_uid)
    throw ConfigError(path.string() +
                      ": cannot be written: it is another user's, in a folder where only they may replace it");
}

constexpr std::string_view kTemporary = ".tmp-";
constexpr std::size_t kRandomDigits = 16;
/// Age from which a temporary file counts as left by a program that was killed.
constexpr auto kAbandoned = std::chrono::hours(24);

/// What follows ".tmp-" for a file called `final_name`: random digits, and eight that only this program puts behind
/// them, so that no file of the user's own is taken for one that may be removed.
std::string temporary_digits(std::string_view final_name, std::string_view random) {
  return fmt::format("{}{:08x}", random, fnv1a(fmt::format("{}/{}", final_name, random)) & 0xffffffffU);
}

/// True if `name` is one that open_temporary gives to the file called `final_name`.
bool is_temporary_name(std::string_view name, std::string_view final_name) {
  if (!name.starts_with(final_name)) return false;
  name.remove_prefix(final_name.size());
  if (!name.starts_with(kTemporary)) return false;
  name.remove_prefix(kTemporary.size());
  return name == temporary_digits(final_name, name.substr(0, kRandomDigits));
}

/// True for a regular file of this user, which alone is removed: others may have reasons for theirs.
bool is_own_file(const std::filesystem::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid();
}

/// Opens a new file beside `path`, under a name that nobody can foresee: what is there already, or a link that someone
/// else has put there, is never written to. Returns -1 and sets errno if it cannot be made.
int open_temporary(const std::filesystem::path& path, Temporary& temporary) {
  static std::random_device random;
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary.path = path.string() + std::string(kTemporary) +
                     temporary_digits(path.filename().string(), fmt::format("{:08x}{:08x}", random(), random()));
    unfinished.note(temporary.path);  // before it is there, because a signal may come in between
    const int file = storage::create(temporary.path.c_str(), O_WRONLY | O_EXCL | O_NOFOLLOW);
    temporary.keep = file < 0;  // no file was created
    if (file >= 0) {
      [[maybe_unused]] const int locked = ::flock(file, LOCK_EX | LOCK_NB);  // what remove_abandoned asks for
      return file;
    }
    const int why = errno;
    unfinished.forget(temporary.path);
    errno = why;
    if (why != EEXIST) return file;
  }
  return -1;
}

/// Removes temporary files for `path` that programs left which were killed.
void remove_abandoned(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const std::string final_name = path.filename().string();
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!is_temporary_name(entry->path().filename().string(), final_name) || !is_own_file(entry->path())) continue;
    std::error_code ignored;
    const auto written = fs::last_write_time(entry->path(), ignored);
    if (ignored || fs::file_time_type::clock::now() - written <= kAbandoned) continue;
    // Where the clock was moved, a program may still be writing what looks old.
    const Descriptor file(::open(entry->path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.get() < 0 || ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
      storage::remove(entry->path().c_str());
  }
}

/// Gives a new file the owner and the permissions of the file that it will replace. Only root may give a file away; the
/// permissions are kept in any case, before content is written, so that nobody can read it meanwhile.
void keep_access(int file, const struct stat& former) {
  struct stat own {};
  if (::fstat(file, &own) != 0) return;
  const bool foreign = own.st_uid != former.st_uid || own.st_gid != former.st_gid;
  if (foreign && ::fchown(file, former.st_uid, former.st_gid) != 0 && ::fchown(file, own.st_uid, former.st_gid) != 0)
    return;  // a group that this user may not give: the permissions would open the file to another group
  if (::fchmod(file, former.st_mode & 0777U) != 0) return;  // a file system without permissions
}

/// Makes a rename last through a loss of power. Some file systems cannot sync a folder; the file is whole all the same.
void sync_folder_of(const std::filesystem::path& file) {
  [[maybe_unused]] const int synced = storage::sync_folder(file.has_parent_path() ? file.parent_path().c_str() : ".");
}

/// Gathers pieces until they are worth a call of the system.
class BufferedFile {
 public:
  BufferedFile(int file, const std::filesystem::path& path) : file_(file), path_(path) {}
  void add(std::string_view piece) {
    if (buffer_.size() + piece.size() <= kFlushBytes) {
      buffer_.append(piece);
      return;
    }
    flush();
    write_all(file_, piece, path_);
  }
  void flush() {
    write_all(file_, buffer_, path_);
    buffer_.clear();
  }

 private:
  static constexpr std::size_t kFlushBytes = std::size_t{1} << 20U;
  int file_;
  const std::filesystem::path& path_;
  std::string buffer_;
};

void produce_to(int file, const std::filesystem::path& path, const std::function<void(const ContentSink&)>& produce) {
  BufferedFile buffered(file, path);
  produce([&](std::string_view piece) { buffered.add(piece); });
  buffered.flush();
}

std::string read_all(int file, const std::filesystem::path& path) {
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "cannot be read");
    if (got == 0) return content;
    if (content.size() + static_cast<std::size_t>(got) > kMaxFileBytes)
      throw ConfigError(fmt::format("{}: is larger than {} GiB, which no input of this program is", path.string(),
                                    kMaxFileBytes >> 30U));
    content.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  if (is_folder(path)) throw ConfigError(path.string() + ": is a directory, expected a file");
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(path, "cannot be read");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, "cannot be read");
  if (!S_ISFIFO(status.st_mode)) return read_all(file.get(), path);
  // What was taken out of a pipe is gone from it, but documents are read more than once.
  static std::mutex mutex;
  static std::map<std::pair<dev_t, ino_t>, std::string> pipes;
  const std::scoped_lock lock(mutex);
  return pipes[{status.st_dev, status.st_ino}] += read_all(file.get(), path);
}

void write_file(const std::filesystem::path& named, std::string_view content) {
  write_file(named, [content](const ContentSink& sink) { sink(content); });
}

void write_file(const std::filesystem::path& named, const std::function<void(const ContentSink&)>& produce) {
  refuse_unwritable(named);
  // Replace what a symbolic link points to, not the link.
  const std::filesystem::path path = target_of(named);
  struct stat former {};
  const bool replaces = ::stat(path.c_str(), &former) == 0;
  // A pipe or /dev/stdout is written to directly, because a file cannot be renamed onto it.
  if (replaces && !S_ISREG(former.st_mode)) {
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() < 0) fail(path, "cannot be written");
    return produce_to(file.get(), path, produce);
  }
  Temporary temporary;
  Descriptor file(open_temporary(path, temporary));
  if (file.get() < 0) fail(path, "cannot be written");
  if (replaces) keep_access(file.get(), former);
  produce_to(file.get(), path, produce);
  if (storage::sync(file.get()) != 0 || !file.close()) fail_writing(path);
  if (storage::rename(temporary.path.c_str(), path.c_str()) != 0) fail_writing(path);
  temporary.keep = true;
  sync_folder_of(path);
}

bool create_file(const std::filesystem::path& path, std::string_view content) {
  refuse_unwritable(path);
  Temporary temporary;
  Descriptor file(open_temporary(path, temporary));
  if (file.get() < 0) fail(path, "cannot be written");
  write_all(file.get(), content, path);
  if (storage::sync(file.get()) != 0 || !file.close()) fail_writing(path);
  // A second name for the file, which unlike a rename replaces nothing; the first one is removed with `temporary`.
  if (storage::link(temporary.path.c_str(), path.c_str()) != 0) {
    if (std::filesystem::exists(path)) return false;
    // A file system without second names: nothing keeps two programs apart there that rename at the same moment.
    if (storage::rename(temporary.path.c_str(), path.c_str()) != 0) fail_writing(path);
    temporary.keep = true;
  }
  sync_folder_of(path);
  return true;
}

std::filesystem::path written_path(const std::filesystem::path& named) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;  // as the system follows
  std::error_code error, ignored;
  fs::path path = fs::weakly_canonical(fs::absolute(named), error);
  // It may be a link to what is not there.
  for (int links = 0; !error && links < kMostLinks && fs::is_symlink(path, ignored); ++links)
    path = fs::weakly_canonical(path.parent_path() / fs::read_symlink(path, ignored), error);
  return error ? fs::absolute(named) : path;
}

void check_writable(const std::filesystem::path& named) {
  refuse_unwritable(named);
  const std::filesystem::path path = target_of(named);
  if (struct stat info{}; ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return;
  Temporary temporary;
  const Descriptor file(open_temporary(path, temporary));
  if (file.get() < 0) fail(path, "cannot be written");
  remove_abandoned(path);
}

void remove_unfinished_files() noexcept { unfinished.remove(); }

}  // namespace ganymede
