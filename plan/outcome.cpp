#include "plan/outcome.hpp"

#include <fmt/format.h>

#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::plan {
namespace {

constexpr double kMostAmount = 1e300;

void check_measure(const JsonNode& node) {
  if (node.as_numbers(0, kMostAmount).size() != 3) node.expected("a median and the two ends of its interval");
}

/// True if the candidate was not simulated because something else beats it.
bool check_answer(const JsonNode& node) {
  JsonObject in(node);
  if (in.optional("beaten")) {
    in.finish();
    return true;
  }
  for (const char* why : {"impossible", "invalid"})
    if (const auto reason = in.optional(why)) {
      (void)reason->as_string();
      in.finish();
      return false;
    }
  for (const char* measure : {"time", "usd", "kg"}) check_measure(in.required(measure));
  for (const char* number : {"usd_at_worst", "losses", "images_per_s"})
    (void)in.required(number).as_number(0, kMostAmount);
  for (const char* mean : {"usd_expected", "usd_worst_tenth"})
    if (const JsonNode given = in.required(mean); !given.value().is_null()) (void)given.as_number(0, kMostAmount);
  if (const auto slope = in.optional("usd_per_image")) (void)slope->as_number(0, kMostAmount);
  for (const char* share : {"busy", "met", "probability"}) (void)in.required(share).as_number(0, 1);
  for (const char* count : {"seeds", "never_finish"}) (void)in.required(count).as_integer(0, 1'000'000);
  for (const char* text : {"risk", "inputs"}) (void)in.required(text).as_string();
  (void)in.required("carbon_known").as_bool();
  for (const JsonNode& warning : in.required("warnings").as_array()) (void)warning.as_string();
  return false;
}

}  // namespace

void check_outcome(const JsonNode& node, std::size_t members) {
  JsonObject in(node);
  const JsonNode answers = in.required("answers");
  const std::vector<JsonNode> all = answers.as_array();
  if (all.size() != members) answers.expected(fmt::format("an answer for each of {} candidates", members));
  bool beaten = true;
  for (const JsonNode& answer : all) beaten = check_answer(answer) && beaten;
  if (beaten && !in.optional("scheme")) return in.finish();
  (void)in.required("scheme").as_string();
  (void)in.required("mean_s").as_numbers(0, kMostAmount);
  (void)in.required("images").as_number(0, kMostAmount);
  in.finish();
}

}  // namespace ganymede::plan
