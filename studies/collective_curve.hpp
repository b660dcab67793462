#pragma once
// A published curve of a collective: its time by size on some GPUs of a machine. Nothing is fitted to it.

#include <cstdint>
#include <string>
#include <vector>

#include "common/json_fwd.hpp"
#include "sim/collectives/allreduce.hpp"
#include "studies/machine.hpp"
#include "studies/rehearsed_study.hpp"

namespace ganymede::studies {

/// One size of a curve.
struct CurveCell {
  std::int64_t bytes = 0;  ///< of the whole buffer
  double measured_us = 0;
};

class CollectiveCurve {
 public:
  /// Reads one entry of "collectives". `root` is the whole file, for the machine that the entry names.
  CollectiveCurve(const JsonNode& node, const JsonNode& root);

  const std::string& name() const { return name_; }
  const std::vector<CurveCell>& cells() const { return cells_; }
  int gpus() const { return nodes_ * gpus_per_node_; }
  /// The class of the evidence that a prediction rests on.
  std::string evidence() const;
  /// The 90 % interval of a prediction, as a factor in either direction.
  double interval() const;
  /// The interval has the width that rehearsals of such links suggest.
  void set_rehearsed(const RehearsedLinks& rehearsed) { link_factor_ = rehearsed.factor(machine_.links(nodes_)); }
  /// Microseconds of a call, by cell.
  std::vector<double> predict() const;

 private:
  std::string name_;
  Machine machine_;
  double link_factor_ = 1;
  int nodes_ = 1, gpus_per_node_ = 1;
  sim::Scheme scheme_;
  sim::Collective collective_ = sim::Collective::all_reduce;
  std::vector<CurveCell> cells_;
};

}  // namespace ganymede::studies
