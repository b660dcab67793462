#include "studies/rehearsed_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibration/interval_classes.hpp"
#include "calibration/statistics.hpp"
#include "common/errors.hpp"
#include "common/random.hpp"

namespace ganymede::studies {
namespace {
constexpr double kDeviations90 = 1.6449;  // of the standard normal distribution, to the ends of its 90 % interval
// docs/rehearse.md, "Measured": played all-reduces from 1 MiB are 10 % off at most on 2 ranks and on 100 Mbit/s, and
// steps of which nothing is communication 2 %.
constexpr double kPlayedLinks = 0.1, kReplayedCompute = 0.02;

/// No link is measured to be so far from what any source says of it; other links than those that are stated are.
constexpr double kMostApart = 10;

/// The half-width that a class states for communication between machines.
double half_width_of_links(const std::string& links) {
  if (links == kPlayedNetwork) return kPlayedLinks;
  return calibration::half_width_of_collective(calibration::link_evidence(links), true);
}

bool is_communication(const documents::ValidatedCell& cell) {
  return cell.predicted && std::find(cell.tags.begin(), cell.tags.end(), "communication") != cell.tags.end();
}

}  // namespace

double half_width_of_rehearsal(const std::string& links, double share) {
  return calibration::in_quadrature(kReplayedCompute, share * half_width_of_links(links));
}

void RehearsedLinks::add(const documents::ValidatedStudy& study, const std::string& file) {
  if (study.links.empty())
    throw ConfigError(file + ": /links: expected what the rehearsed links come from, which rehearse --output writes");
  if (std::none_of(study.cells.begin(), study.cells.end(), is_communication))
    throw ConfigError(file +
                      ": /cells: found none with the tag \"communication\", expected one: what a rehearsal hides "
                      "behind compute, or is below 5 % of a step, says nothing about links");
  Sums& sums = kinds_[study.links];
  for (const documents::ValidatedCell& cell : study.cells) {
    if (!is_communication(cell)) continue;
    const double ratio = *cell.measured / *cell.predicted;
    if (!(ratio > 1 / kMostApart && ratio < kMostApart))
      throw ConfigError(
          fmt::format("{}: /cells: communication took {:g} times what is predicted, expected less than {:g} "
                      "times more or less: these are other links than those of the study's platform",
                      file, ratio, kMostApart));
    const double error = portable_log(ratio);
    const double deviations = kDeviations90 * error / half_width_of_links(study.links);
    ++sums.count;
    sums.errors += error;
    sums.deviations_squared += deviations * deviations;
  }
}

double RehearsedLinks::factor(const std::string& links) const {
  const auto found = kinds_.find(links);
  if (found == kinds_.end()) return 1;
  return std::sqrt((kWeight + found->second.deviations_squared) / (kWeight + found->second.count));
}

double RehearsedLinks::factor(LinkEvidence links) const {
  switch (links) {
    case LinkEvidence::measured:
    case LinkEvidence::fitted:  // both have the same width
      return factor("measured");
    case LinkEvidence::datasheet:
      return factor("datasheet");
    case LinkEvidence::assumed:
      return factor("assumed");
  }
  return 1;
}

std::vector<documents::ValidationResult::Rehearsed> RehearsedLinks::kinds() const {
  std::vector<documents::ValidationResult::Rehearsed> out;
  for (const auto& [links, sums] : kinds_)
    out.push_back({links, sums.count, portable_exp(sums.errors / sums.count) - 1, factor(links)});
  return out;
}

}  // namespace ganymede::studies
