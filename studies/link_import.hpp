#pragma once
// Fits a platform's links to the log of timed collectives that nccl-tests prints.

#include <cstddef>
#include <string>

namespace ganymede::studies {

struct LinkImport {
  std::string log = {}, catalog = {}, overlay = {}, instance = {}, scheme = {};
  int nodes = 0;          ///< 0: as the log says, or 1 if it does not say
  int gpus_per_node = 0;  ///< 0: as the log says, or all of the instance if it does not say
  bool eager = false;     ///< sources do not wait for destinations (ProtocolCost::eager)
};

struct ImportedLinks {
  std::string overlay;  ///< a ganymede.overlay/1 file
  std::string report;   ///< tables of the errors and notes, for people
};

/// Fits latency and bandwidth of the link that bounds the collective. The report is fitted to `width` columns. Throws
/// ConfigError for a log that contradicts the options, or that no such link explains.
ImportedLinks import_links(const LinkImport& options, std::size_t width);

}  // namespace ganymede::studies
