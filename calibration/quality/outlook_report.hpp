#pragma once
// Forecasts of quality and comparisons of policies, as documents and for people.

#include <string>

#include "calibration/quality/policies.hpp"
#include "common/json_fwd.hpp"

namespace ganymede::calibration {

/// A `ganymede.quality-forecast/1`. `run` is the training's name; empty: the outlook is of a kind alone.
OrderedJson to_json(const QualityModel& model, const QualityQuestion& question, const QualityOutlook& outlook,
                    const std::string& run);
std::string to_table(const QualityOutlook& outlook);

/// A `ganymede.quality-policies/1`. `usd_per_million` is what a million images cost; 0: not known.
OrderedJson to_json(const PolicyQuestion& question, const PolicyComparison& all, double usd_per_million);
std::string to_table(const PolicyQuestion& question, const PolicyComparison& all, double usd_per_million);

}  // namespace ganymede::calibration
