#pragma once
// What a learned table is worth, for people.

#include <string>

#include "plan/learn.hpp"

namespace ganymede::cli {

/// What the table costs on seeds on which it was not trained, beside the other policies.
std::string judgement_text(const plan::LearnedTable& learned, const plan::LearnOptions& options);

}  // namespace ganymede::cli
