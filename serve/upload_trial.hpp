#pragma once
// A file that is sent to the server is read first by a process of its own, whose memory and time are bounded, so that
// what no reader has foreseen ends that process and not the server.

#include <filesystem>
#include <string>

namespace ganymede::serve {

constexpr const char* kTrial = "trial-";  ///< how names of its folders begin

/// Has the program read the file of that kind ("trace" or "platform") as a command would. Returns also for a file that
/// the command refuses, because the server says better why. Throws ConfigError, which begins with `name`, if reading it
/// crashed, took more than 512 MiB, or a quarter of the server's memory, or more than a minute.
/// @param folder of the server, in which the file stands for so long
void try_upload(const std::string& kind, const std::string& name, const std::string& text,
                const std::filesystem::path& folder);

}  // namespace ganymede::serve
