#include "cli/member_flags.hpp"

#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::cli {

Option MemberFlags::Declaring::text(const char* flag, const char* pointer, const char* what) const {
  flags.names_[pointer] = flag;
  return command.add_option(flag, flags.texts_[pointer], what);
}

Option MemberFlags::Declaring::number(const char* flag, const char* pointer, const char* what) const {
  flags.names_[pointer] = flag;
  return command.add_option(flag, flags.numbers_[pointer], what, positive_integer());
}

Option MemberFlags::Declaring::count(const char* flag, const char* pointer, const char* what) const {
  flags.names_[pointer] = flag;
  return command.add_option(flag, flags.numbers_[pointer], what).transform(positive_count());
}

Option MemberFlags::Declaring::list(const char* flag, const char* pointer, const char* what) const {
  flags.names_[pointer] = flag;
  return command.add_option(flag, flags.lists_[pointer], what).delimiter(',');
}

bool MemberFlags::has(const std::string& pointer) const {
  const auto text = texts_.find(pointer);
  const auto number = numbers_.find(pointer);
  const auto values = lists_.find(pointer);
  return (text != texts_.end() && !text->second.empty()) || (number != numbers_.end() && number->second != 0) ||
         (values != lists_.end() && !values->second.empty());
}

std::vector<JsonOverride> MemberFlags::overrides() const {
  std::vector<JsonOverride> all;
  for (const auto& [pointer, value] : texts_)
    if (!value.empty()) all.push_back({pointer, Json(value).dump()});
  for (const auto& [pointer, value] : numbers_)
    if (value != 0) all.push_back({pointer, Json(value).dump()});
  for (const auto& [pointer, values] : lists_)
    if (!values.empty()) all.push_back({pointer, Json(values).dump()});
  return all;
}

std::string MemberFlags::with_flag(const std::string& message) const {
  const std::size_t begin = message.find(": /");
  const std::size_t end = begin == std::string::npos ? begin : message.find(": ", begin + 2);
  if (end == std::string::npos) return message;
  std::string place = message.substr(begin + 2, end - begin - 2);
  // The scenario of a plan lies deeper than one of its own.
  const std::string chosen = "/chosen/scenario";
  if (place.starts_with(chosen)) place.erase(0, chosen.size());
  // The member itself, or an entry of a list: "/search/gpus" or "/search/gpus/0".
  const std::string list = place.substr(0, place.find_last_not_of("0123456789") + 1);
  for (const auto& [pointer, flag] : names_)
    if (has(pointer) && (place == pointer || list == pointer + "/")) return flag + message.substr(end);
  return message;
}

}  // namespace ganymede::cli
