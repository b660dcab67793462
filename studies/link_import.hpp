#pragma once
// Fits a platform's links to the log of timed collectives that nccl-tests prints.

#include <cstddef>
#include <string>

#include "studies/logged_collective.hpp"

namespace ganymede::studies {

struct LinkImport : LogOptions {
  std::string log = {}, catalog = {}, overlay = {}, instance = {};
};

struct ImportedLinks {
  std::string overlay;  ///< a ganymede.overlay/1 file
  std::string report;   ///< tables of the errors and notes, for people
};

/// Fits latency and bandwidth of the link that bounds the collective. The report is fitted to `width` columns. Throws
/// ConfigError for a log that contradicts the options, or that no such link explains.
ImportedLinks import_links(const LinkImport& options, std::size_t width);

}  // namespace ganymede::studies
