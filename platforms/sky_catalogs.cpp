#include "platforms/sky_catalogs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/text.hpp"
#include "platforms/price_list.hpp"
#include "platforms/providers.hpp"
#include "platforms/sky_platform.hpp"

namespace ganymede::platforms {
namespace {

namespace fs = std::filesystem;

/// SkyPilot's lists by the cloud's name.
using Lists = std::map<std::string, fs::path>;

Lists lists_in(const fs::path& folder) {
  Lists lists;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (const fs::path list = entry.path() / "vms.csv"; fs::is_regular_file(list, ignored))
      lists.emplace(entry.path().filename().string(), list);
  return lists;
}

/// 8 for "v8"; nothing for another name.
std::optional<int> version_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  int version = 0;
  const auto [end, error] =
      std::from_chars(name.data() + std::min<std::size_t>(1, name.size()), name.data() + name.size(), version);
  if (name.size() < 2 || name[0] != 'v' || error != std::errc() || end != name.data() + name.size())
    return std::nullopt;
  return version;
}

/// The lists of each version, by the version; one without a number is 0.
std::map<int, Lists> versions_in(const fs::path& folder) {
  std::map<int, Lists> versions;
  std::error_code ignored;
  if (fs::is_regular_file(folder, ignored)) {
    versions[0][fs::absolute(folder).parent_path().filename().string()] = folder;
    return versions;
  }
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (const auto version = version_of(entry.path()))
      if (Lists lists = lists_in(entry.path()); !lists.empty()) versions[*version] = std::move(lists);
  if (Lists lists = lists_in(folder); versions.empty() && !lists.empty()) versions[0] = std::move(lists);
  return versions;
}

fs::path own_folder() {
  const char* home = std::getenv("HOME");
  return fs::path(home == nullptr ? "." : home) / ".sky/catalogs";
}

/// SkyPilot's name of a cloud that is called by ours or by SkyPilot's.
std::string sky_name(const std::string& cloud) {
  const std::string_view sky = provider_of(cloud).sky;
  return sky.empty() ? cloud : std::string(sky);
}

}  // namespace

SkyPlatforms platforms_of_sky(const SkyCatalogs& catalogs) {
  const fs::path folder = catalogs.folder.empty() ? own_folder() : catalogs.folder;
  const auto versions = versions_in(folder);
  if (versions.empty())
    throw ConfigError(
        fmt::format("--from-skypilot {}: found no CLOUD/vms.csv there, nor in folders v5, v6, …; SkyPilot writes "
                    "~/.sky/catalogs/vN/CLOUD/vms.csv when it lists prices, as `sky show-gpus` does",
                    folder.string()));
  const auto& [newest, lists] = *versions.rbegin();
  SkyPlatforms out;
  std::vector<std::string> names;
  for (const auto& [name, list] : lists) names.push_back(name);
  for (const auto& [version, older] : versions)
    for (const auto& [name, list] : older)
      if (!lists.contains(name) && catalogs.clouds.empty())
        out.remarks.push_back(fmt::format("{} has no list in v{}, the newest; --from-skypilot {} reads that of v{}",
                                          name, newest, list.parent_path().parent_path().string(), version));
  std::vector<std::string> wanted = names;
  if (!catalogs.clouds.empty()) wanted.clear();
  for (const std::string& cloud : catalogs.clouds) {
    const std::string name = sky_name(cloud);
    if (!lists.contains(name)) {
      throw ConfigError(fmt::format("--cloud {}: {} has no list of it; it has {}{}", cloud, folder.string(),
                                    list_of(names), did_you_mean(cloud, names)));
    }
    wanted.push_back(name);
  }
  for (const std::string& name : wanted) {
    const fs::path& list = lists.at(name);
    const std::string as_of = catalogs.as_of.empty() ? day_written(list).value_or("") : catalogs.as_of;
    if (as_of > catalogs.today)
      throw ConfigError(
          fmt::format("{}: was written on {}, which is in the future (today is {}); --as-of states its day",
                      list.string(), as_of, catalogs.today));
    SkyPlatform made;
    try {
      made = load_sky_list(list, {name, as_of});
    } catch (const NoMachines& none) {
      // A cloud that rents no accelerators now is no reason to refuse the others.
      if (wanted.size() == 1) throw;
      out.remarks.emplace_back(none.what());
      continue;
    }
    out.remarks.insert(out.remarks.end(), made.remarks.begin(), made.remarks.end());
    out.files.push_back({std::string(provider_of_sky(name)), std::move(made.text)});
  }
  if (out.files.empty()) throw ConfigError(fmt::format("{}: no list has a machine with accelerators", folder.string()));
  return out;
}

}  // namespace ganymede::platforms
