#pragma once
// Reads a SimGrid platform's XML before SimGrid does: SimGrid 3.32 opens files that the XML names, lets it change any
// setting (some write files), and ends the process at a mistake.

#include <string>
#include <utility>
#include <vector>

namespace ganymede::sim {

struct PlatformXml {
  /// The platform alone, on the lines of the file: without comments, settings, disks and document type.
  std::string text;
  std::vector<std::string> hosts;  ///< in the order of the file, also those of clusters
  /// The properties (<prop>) of the outermost zone.
  std::vector<std::pair<std::string, std::string>> properties;
  std::vector<std::string> left_out;  ///< what `text` lacks, for example "<config> in line 4"
};

/// The highest number of hosts that a platform may have.
inline constexpr int kMaxImportedHosts = 1024;

/// Throws ConfigError "file:line:column: message" for text that is not XML, has entities or too many levels, is of
/// another version than 4, or has an element or attribute that a platform file does not need: another program's files,
/// traces of availability, actors; and for what SimGrid ends the process at: two hosts or links of one name, speeds
/// that are no positive numbers, hosts of one zone without a route.
PlatformXml read_platform_xml(const std::string& file, const std::string& content);

}  // namespace ganymede::sim
