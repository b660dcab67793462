#pragma once
// The worth of a learned table, for people.

#include <string>

#include "plan/learn.hpp"

namespace ganymede::cli {

/// Says how much the table costs on seeds on which it was not trained, beside the other policies.
std::string judgement_text(const plan::LearnedTable& learned, const plan::LearnOptions& options);

}  // namespace ganymede::cli
