#pragma once
// What a request's recipe says of its workload.

#include <string>

#include "common/json_fwd.hpp"
#include "plan/request.hpp"
#include "traces/recipe.hpp"

namespace ganymede::plan {

/// The recipe that a request names in "recipe". Sets `trace_choice` to a sentence for people, and `recipe_saves`.
/// Throws ConfigError, located.
traces::Recipe read_recipe(const JsonNode& node, Request& request);

/// The images of the recipe's target; its epochs are of the workload's "dataset". Throws ConfigError at the workload if
/// it has none.
std::int64_t recipe_images(const JsonNode& workload, const traces::Recipe& recipe);

/// The recipe's own batches: its images in all, shared by each number of GPUs that divides them. Throws ConfigError at
/// the recipe if there is none.
void add_recipe_batches(const JsonNode& at, const traces::Recipe& recipe, Request& request);

}  // namespace ganymede::plan
