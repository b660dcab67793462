#pragma once
// What an imported log and the links that were fitted to it are written as: an overlay, and tables for people.

#include <cstddef>
#include <string>
#include <vector>

#include "calibration/link_fit.hpp"
#include "studies/link_import.hpp"

namespace ganymede::studies {

struct LinkReport {
  std::string log, version, instance;
  std::string link, link_title;  ///< the fitted one: the instance's member, and its name for people
  std::string scheme, collective;
  int nodes = 1, gpus_per_node = 1;
  double stated_off = 0;  ///< MeasuredCollective::stated_off
  calibration::LinkFit fit;
  std::vector<std::string> notes;
};

ImportedLinks imported_links(const LinkReport& of, std::size_t width);

}  // namespace ganymede::studies
