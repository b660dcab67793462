#include "sim/engine/simgrid_platform.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/process.hpp"
#include "sim/engine/platform_xml.hpp"
#include "sim/engine/simgrid_module.hpp"

namespace ganymede::sim {
namespace {

/// A folder for the platform as SimGrid reads it and for what SimGrid says; it is removed at the end.
class WorkFolder {
 public:
  WorkFolder() : path_((std::filesystem::temp_directory_path() / "ganymede-simgrid-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) throw Failure(fmt::format("cannot make a folder {}", path_));
  }
  ~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  std::string platform() const { return path_ + "/platform.xml"; }
  std::string messages() const { return path_ + "/messages"; }

 private:
  std::string path_;
};

/// SimGrid's complaint, by its exception or, if it ended the process, by its messages; for example
/// "platform.xml:5: Starting tag <host> is not allowed here".
std::string complaint_of(const std::string& file, const WorkFolder& folder, const std::string& exception) {
  const std::string place = folder.platform() + ":", critical = "/CRITICAL] ";
  std::istringstream lines(exception + "\n" + read_file(folder.messages()));
  for (std::string line; std::getline(lines, line);) {
    if (const auto at = line.find(place); at != std::string::npos)
      return fmt::format("{}:{}", file, line.substr(at + place.size()));
    // "[0.000000] ./src/...:529: [root/CRITICAL] message"
    if (const auto at = line.rfind(critical); at != std::string::npos)
      return fmt::format("{}: SimGrid says: {}", file, line.substr(at + critical.size()));
  }
  return fmt::format("{}: SimGrid cannot load it: {}", file, exception);
}

/// From now on SimGrid's messages are for complaint_of().
void keep_messages(const WorkFolder& folder) {
  const int messages = ::open(folder.messages().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (messages < 0 || ::dup2(messages, STDERR_FILENO) < 0) throw Failure("cannot keep what SimGrid says");
}

}  // namespace

std::string with_simgrid_platform(const std::string& file, const std::function<void(SimGridPlatform&)>& choose,
                                  const std::function<std::string(SimGridPlatform&)>& work) {
  const PlatformXml xml = read_platform_xml(file, read_file(file));
  // SimGrid 3.32 ends at once where a platform has no zone.
  const auto has = [&](const char* tag) { return xml.text.find(tag) != xml.text.npos; };
  if (!has("<zone") && !has("<AS") && !has("<cluster"))
    throw ConfigError(fmt::format("{}: has no <zone> (<AS> in older ones), expected hosts in one", file));
  const WorkFolder folder;
  write_file(folder.platform(), xml.text);
  write_file(folder.messages(), "");
  const SimGridModule& simgrid = simgrid_module();
  const auto outcomes = run_children(1, 1, [&](std::size_t) -> std::string {
    keep_messages(folder);
    SimGridPlatform platform = simgrid.read_platform(xml, folder.platform(), choose);
    return work(platform);
  });
  if (outcomes[0].kind == ChildOutcome::Kind::failure) throw ConfigError(complaint_of(file, folder, outcomes[0].text));
  rethrow(outcomes[0]);
  return outcomes[0].text;
}

}  // namespace ganymede::sim
