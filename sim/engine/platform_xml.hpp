#pragma once
// Reads a SimGrid platform's XML before SimGrid does: SimGrid 3.32 opens files that the XML names, lets it change any
// setting (some write files), and ends the process at a mistake.

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/units.hpp"

namespace ganymede::sim {

struct PlatformXml {
  /// The platform alone, on the lines of the file: without comments, settings, disks, programs and document type.
  std::string text;
  std::vector<std::string> hosts;  ///< in the order of the file, also those of clusters
  /// The properties (<prop>) of the outermost zone.
  std::vector<std::pair<std::string, std::string>> properties;
  std::map<std::string, BytesPerSecond> wireless;  ///< the bandwidth of each wireless link for hosts that are near
  std::vector<std::string> notes;  ///< what `text` lacks and why, for example "<config> in line 4 was left out: ..."
  /// True if a route leads from one of `hosts` to another, which SimGrid must not be asked for otherwise.
  std::function<bool(std::size_t from, std::size_t to)> joined;
};

/// Throws ConfigError "file:line:column: message" for text that is not XML, has entities, too many levels or hosts, is
/// of another version than 4, or has an element or attribute that SimGrid 3.32 does not read; and for what SimGrid ends
/// the process at: two hosts or links of one name, speeds that are no positive numbers.
PlatformXml read_platform_xml(const std::string& file, const std::string& content);

}  // namespace ganymede::sim
