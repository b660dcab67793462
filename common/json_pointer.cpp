// JSON pointers (RFC 6901), and the values that they lead to.

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "common/json_value.hpp"

namespace ganymede {
namespace {

/// The index that a step of a pointer means; nothing if it is no index.
std::optional<std::size_t> index_of(const std::string& step) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  const bool whole = error == std::errc() && end == step.data() + step.size();
  const bool leading_zero = step.size() > 1 && step[0] == '0';
  return whole && !leading_zero ? std::optional(index) : std::nullopt;
}

}  // namespace

JsonPointer::JsonPointer(std::string_view text) {
  if (!text.empty() && text[0] != '/')
    throw JsonError(fmt::format("JSON pointer must be empty or begin with '/' - was: '{}'", text));
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '/') {
      steps_.emplace_back();
    } else if (text[i] == '~') {
      const char escaped = i + 1 < text.size() ? text[++i] : '\0';
      if (escaped != '0' && escaped != '1') throw JsonError("escape character '~' must be followed with '0' or '1'");
      steps_.back() += escaped == '0' ? '~' : '/';
    } else {
      steps_.back() += text[i];
    }
  }
}

JsonPointer JsonPointer::parent_pointer() const {
  JsonPointer parent = *this;
  if (!parent.steps_.empty()) parent.steps_.pop_back();
  return parent;
}

std::string JsonPointer::to_string() const {
  std::string text;
  for (const std::string& step : steps_) {
    text += '/';
    for (const char c : step) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return text;
}

template <bool kOrdered>
const BasicJson<kOrdered>* BasicJson<kOrdered>::find_at(const JsonPointer& pointer) const {
  const BasicJson* here = this;
  for (const std::string& step : pointer.steps()) {
    if (here->is_array()) {
      const auto index = index_of(step);
      here = index && *index < here->size() ? &(*here->is_.array)[*index] : nullptr;
    } else {
      here = here->member(step);
    }
    if (!here) return nullptr;
  }
  return here;
}

template <bool kOrdered>
const BasicJson<kOrdered>& BasicJson<kOrdered>::at(const JsonPointer& pointer) const {
  if (const BasicJson* found = find_at(pointer)) return *found;
  throw JsonError(fmt::format("nothing at '{}'", pointer.to_string()));
}

template <bool kOrdered>
BasicJson<kOrdered>& BasicJson<kOrdered>::operator[](const JsonPointer& pointer) {
  BasicJson* here = this;
  for (const std::string& step : pointer.steps()) {
    auto index = index_of(step);
    if (here->is_null() && (index || step == "-")) *here = array();
    if (here->is_array()) {
      if (step == "-") index = here->size();  // one more, by the pointers' standard
      if (!index) throw JsonError(fmt::format("array index '{}' is not a number, or begins with 0", step));
      if (*index > here->size())
        throw JsonError(fmt::format("array index {} is beyond the end of {} elements", step, here->size()));
      if (*index == here->size()) here->is_.array->emplace_back();
      here = &(*here->is_.array)[*index];
    } else {
      if (!here->is_null() && !here->is_object())
        throw JsonError(fmt::format("nothing at '{}': it is in a value that is no object", step));
      here = &(*here)[step];
    }
  }
  return *here;
}

template const BasicJson<false>* BasicJson<false>::find_at(const JsonPointer& pointer) const;
template const BasicJson<false>& BasicJson<false>::at(const JsonPointer& pointer) const;
template BasicJson<false>& BasicJson<false>::operator[](const JsonPointer& pointer);
template const BasicJson<true>* BasicJson<true>::find_at(const JsonPointer& pointer) const;
template const BasicJson<true>& BasicJson<true>::at(const JsonPointer& pointer) const;
template BasicJson<true>& BasicJson<true>::operator[](const JsonPointer& pointer);

}  // namespace ganymede
