#pragma once
// What a log of NCCL says in its own words, beside its table of times.

#include <string>
#include <string_view>
#include <vector>

#include "studies/link_causes.hpp"

namespace ganymede::studies {

/// The number of NICs of a node that NCCL says it uses, "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB", or that
/// NCCL_IB_HCA names; 0: the log does not say.
int nics_of(const std::string& text);

/// The first line of the log with one of the words and without `lacks`, unless that is ""; "" if there is none.
std::string line_with(const std::string& text, const std::vector<std::string_view>& words, std::string_view lacks = "");

/// A value of a variable such as NCCL_ALGO: "ring", "^ring,tree", "allreduce:ring;broadcast:tree".
struct Allowed {
  std::string line;             ///< of the log; "": the log says nothing that NCCL knows
  std::vector<double> degrees;  ///< those of the cause that are left; empty: another value, which no degree has
};

/// What the first line allows this collective that sets one of the cause's variables, as "NCCL_ALGO=^Ring,Tree" or
/// "NCCL_ALGO set by environment to allreduce:ring".
Allowed allowed_by(const std::string& text, const LinkCause& cause, std::string collective);

/// A sentence without its end on what such a value leaves.
std::string said_of(const LinkCause& cause, const std::vector<double>& degrees);

}  // namespace ganymede::studies
