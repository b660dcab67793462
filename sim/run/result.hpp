#pragma once
// A run leaves a document for people and other programs (documents/result.hpp). Its parts by their short names:

#include "documents/result.hpp"

namespace ganymede::sim {

using documents::CostByUse;
using documents::Interval;
using documents::LaunchPool;
using documents::LaunchRequest;
using documents::PoolUse;
using documents::Result;
using documents::RunEvent;
using documents::SeedRuns;

}  // namespace ganymede::sim
