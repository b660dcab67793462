#include "common/json_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace ganymede {
namespace {

/// Members with one way to find and to add one, whichever order they have.
template <class Value>
using SortedMembers = std::map<std::string, Value, std::less<>>;
template <class Value>
using OrderedMembers = std::vector<std::pair<std::string, Value>>;

template <class Value>
auto find_in(SortedMembers<Value>& members, std::string_view key) {
  return members.find(key);
}
template <class Value>
auto find_in(OrderedMembers<Value>& members, std::string_view key) {
  return std::find_if(members.begin(), members.end(), [&](const auto& member) { return member.first == key; });
}
template <class Value>
Value& add_to(SortedMembers<Value>& members, std::string_view key) {
  return members.emplace(key, Value()).first->second;
}
template <class Value>
Value& add_to(OrderedMembers<Value>& members, std::string_view key) {
  return members.emplace_back(std::string(key), Value()).second;
}

}  // namespace

template <bool kOrdered>
BasicJson<kOrdered>::BasicJson(Kind kind) {
  if (kind == Kind::string) is_.string = new std::string;
  if (kind == Kind::array) is_.array = new Array;
  if (kind == Kind::object) is_.object = new Object;
  kind_ = kind;
}

template <bool kOrdered>
BasicJson<kOrdered>::BasicJson(std::string text) : BasicJson(Kind::string) {
  is_.string->swap(text);
}

template <bool kOrdered>
BasicJson<kOrdered>::BasicJson(std::initializer_list<Item> list) {
  const bool members = std::all_of(list.begin(), list.end(), [](const Item& item) {
    return item.value.is_array() && item.value.size() == 2 && item.value.front().is_string();
  });
  *this = members ? object(list) : array(list);
}

template <bool kOrdered>
BasicJson<kOrdered> BasicJson<kOrdered>::array(std::initializer_list<Item> list) {
  BasicJson out = array();
  out.is_.array->reserve(list.size());
  for (const Item& item : list) out.is_.array->push_back(std::move(item.value));
  return out;
}

template <bool kOrdered>
BasicJson<kOrdered> BasicJson<kOrdered>::object(std::initializer_list<Item> list) {
  BasicJson out = object();
  for (const Item& item : list) {
    BasicJson& key = item.value.at(0);
    if (!out.contains(key.as_string())) out[key.as_string()] = std::move(item.value.at(1));  // the first one counts
  }
  return out;
}

template <bool kOrdered>
BasicJson<kOrdered>::BasicJson(const BasicJson& other) : BasicJson(other.kind_) {
  switch (kind_) {
    case Kind::string:
      *is_.string = *other.is_.string;
      break;
    case Kind::array:
      *is_.array = *other.is_.array;
      break;
    case Kind::object:
      *is_.object = *other.is_.object;
      break;
    default:
      is_ = other.is_;
  }
}

template <bool kOrdered>
BasicJson<kOrdered>::BasicJson(const BasicJson<!kOrdered>& other) : BasicJson(static_cast<Kind>(other.kind_)) {
  switch (kind_) {
    case Kind::boolean:
      is_.boolean = other.is_.boolean;
      break;
    case Kind::integer:
      is_.integer = other.is_.integer;
      break;
    case Kind::unsigned_integer:
      is_.unsigned_integer = other.is_.unsigned_integer;
      break;
    case Kind::floating:
      is_.floating = other.is_.floating;
      break;
    case Kind::string:
      *is_.string = *other.is_.string;
      break;
    case Kind::array:
      is_.array->assign(other.is_.array->begin(), other.is_.array->end());
      break;
    case Kind::object:
      for (const auto& [key, value] : *other.is_.object) add_to(*is_.object, key) = value;
      break;
    case Kind::null:
      break;
  }
}

template <bool kOrdered>
void BasicJson<kOrdered>::release() {
  if (kind_ == Kind::string) delete is_.string;
  if (kind_ == Kind::array) delete is_.array;
  if (kind_ == Kind::object) delete is_.object;
}

template <bool kOrdered>
const char* BasicJson<kOrdered>::type_name() const {
  constexpr const char* kNames[] = {"null", "boolean", "number", "number", "number", "string", "array", "object"};
  return kNames[static_cast<std::size_t>(kind_)];
}

template <bool kOrdered>
void BasicJson<kOrdered>::wrong_type(std::string_view wanted) const {
  throw JsonError(fmt::format("type must be {}, but is {}", wanted, type_name()));
}

template <bool kOrdered>
std::size_t BasicJson<kOrdered>::size() const {
  if (kind_ == Kind::array) return is_.array->size();
  if (kind_ == Kind::object) return is_.object->size();
  return kind_ == Kind::null ? 0 : 1;
}

template <bool kOrdered>
const std::string& BasicJson<kOrdered>::as_string() const {
  if (!is_string()) wrong_type("string");
  return *is_.string;
}

template <bool kOrdered>
bool BasicJson<kOrdered>::as_boolean() const {
  if (!is_boolean()) wrong_type("boolean");
  return is_.boolean;
}

template <bool kOrdered>
double BasicJson<kOrdered>::as_double() const {
  switch (kind_) {
    case Kind::integer:
      return static_cast<double>(is_.integer);
    case Kind::unsigned_integer:
      return static_cast<double>(is_.unsigned_integer);
    case Kind::floating:
      return is_.floating;
    default:
      wrong_type("number");
  }
}

template <bool kOrdered>
std::int64_t BasicJson<kOrdered>::as_integer() const {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  switch (kind_) {
    case Kind::integer:
      return is_.integer;
    case Kind::unsigned_integer:
      return static_cast<std::int64_t>(is_.unsigned_integer);
    case Kind::floating:
      if (!(is_.floating >= -kEnd && is_.floating < kEnd))
        throw JsonError(fmt::format("{} is no 64-bit integer", is_.floating));
      return static_cast<std::int64_t>(is_.floating);
    default:
      wrong_type("number");
  }
}

template <bool kOrdered>
std::uint64_t BasicJson<kOrdered>::as_unsigned() const {
  if (kind_ == Kind::floating && is_.floating >= 0x1p63 && is_.floating < 0x1p64)
    return static_cast<std::uint64_t>(is_.floating);
  return static_cast<std::uint64_t>(as_integer());
}

template <bool kOrdered>
const BasicJson<kOrdered>* BasicJson<kOrdered>::member(std::string_view key) const {
  if (!is_object()) return nullptr;
  const auto found = find_in(*is_.object, key);
  return found == is_.object->end() ? nullptr : &found->second;
}

template <bool kOrdered>
const BasicJson<kOrdered>& BasicJson<kOrdered>::required_object() const {
  if (!is_object()) wrong_type("object");
  return *this;
}

template <bool kOrdered>
const BasicJson<kOrdered>& BasicJson<kOrdered>::at(std::string_view key) const {
  if (const BasicJson* found = required_object().member(key)) return *found;
  throw JsonError(fmt::format("key '{}' not found", key));
}

template <bool kOrdered>
const BasicJson<kOrdered>& BasicJson<kOrdered>::at(std::size_t index) const {
  if (!is_array()) wrong_type("array");
  if (index >= is_.array->size()) throw JsonError(fmt::format("array index {} is out of range", index));
  return (*is_.array)[index];
}

template <bool kOrdered>
BasicJson<kOrdered>& BasicJson<kOrdered>::operator[](std::string_view key) {
  Object& members = items();
  const auto found = find_in(members, key);
  return found == members.end() ? add_to(members, key) : found->second;
}

template <bool kOrdered>
void BasicJson<kOrdered>::update(const BasicJson& other) {
  for (const auto& [key, value] : other.items()) (*this)[key] = value;
}

template <bool kOrdered>
void BasicJson<kOrdered>::merge_patch(const BasicJson& patch) {
  if (!patch.is_object()) {
    *this = patch;
    return;
  }
  if (!is_object()) *this = object();
  for (const auto& [key, value] : patch.items()) {
    if (value.is_null())
      erase(key);
    else
      (*this)[key].merge_patch(value);
  }
}

template <bool kOrdered>
std::size_t BasicJson<kOrdered>::erase(std::string_view key) {
  if (is_null()) return 0;
  Object& members = items();
  const auto found = find_in(members, key);
  if (found == members.end()) return 0;
  members.erase(found);
  return 1;
}

template <bool kOrdered>
void BasicJson<kOrdered>::erase(std::size_t index) {
  (void)at(index);
  is_.array->erase(is_.array->begin() + static_cast<std::ptrdiff_t>(index));
}

template <bool kOrdered>
void BasicJson<kOrdered>::erase(const_iterator at) {
  if (at.is_member_)
    is_.object->erase(at.member_);
  else
    erase(static_cast<std::size_t>(at.element_ - elements().data()));
}

template <bool kOrdered>
void BasicJson<kOrdered>::clear() {
  *this = BasicJson(kind_);
}

template <bool kOrdered>
typename BasicJson<kOrdered>::const_iterator BasicJson<kOrdered>::begin() const {
  if (is_object()) return const_iterator(is_.object->cbegin());
  return const_iterator(is_array() ? is_.array->data() : this);
}

template <bool kOrdered>
typename BasicJson<kOrdered>::const_iterator BasicJson<kOrdered>::end() const {
  if (is_object()) return const_iterator(is_.object->cend());
  return const_iterator((is_array() ? is_.array->data() : this) + size());
}

template <bool kOrdered>
typename BasicJson<kOrdered>::iterator BasicJson<kOrdered>::begin() {
  if (is_object()) return iterator(is_.object->begin());
  return iterator(is_array() ? is_.array->data() : this);
}

template <bool kOrdered>
typename BasicJson<kOrdered>::iterator BasicJson<kOrdered>::end() {
  if (is_object()) return iterator(is_.object->end());
  return iterator((is_array() ? is_.array->data() : this) + size());
}

template <bool kOrdered>
typename BasicJson<kOrdered>::const_iterator BasicJson<kOrdered>::find(std::string_view key) const {
  return is_object() ? const_iterator(find_in(*is_.object, key)) : end();
}

template <bool kOrdered>
typename BasicJson<kOrdered>::iterator BasicJson<kOrdered>::find(std::string_view key) {
  return is_object() ? iterator(find_in(*is_.object, key)) : end();
}

template <bool kOrdered>
typename BasicJson<kOrdered>::Object& BasicJson<kOrdered>::items() {
  if (is_null()) *this = object();
  return *required_object().is_.object;
}

template <bool kOrdered>
const typename BasicJson<kOrdered>::Object& BasicJson<kOrdered>::items() const {
  static const Object kNone;
  return is_null() ? kNone : *required_object().is_.object;
}

template <bool kOrdered>
typename BasicJson<kOrdered>::Array& BasicJson<kOrdered>::elements() {
  if (is_null()) *this = array();
  if (!is_array()) wrong_type("array");
  return *is_.array;
}

template <bool kOrdered>
const typename BasicJson<kOrdered>::Array& BasicJson<kOrdered>::elements() const {
  if (!is_array()) wrong_type("array");
  return *is_.array;
}

template <bool kOrdered>
std::partial_ordering BasicJson<kOrdered>::order(const BasicJson& other) const {
  if (!is_number_integer() || !other.is_number_integer()) return as_double() <=> other.as_double();
  if (kind_ == Kind::integer && other.kind_ == Kind::integer) return is_.integer <=> other.is_.integer;
  const auto negative = [](const BasicJson& one) { return one.kind_ == Kind::integer && one.is_.integer < 0; };
  if (negative(*this)) return std::partial_ordering::less;  // the other one is unsigned
  if (negative(other)) return std::partial_ordering::greater;
  return is_.unsigned_integer <=> other.is_.unsigned_integer;
}

template <bool kOrdered>
bool BasicJson<kOrdered>::equals(const BasicJson& other) const {
  if (is_number() && other.is_number()) {
    if (is_number_float() || other.is_number_float()) return as_double() == other.as_double();
    if (kind_ == other.kind_) return is_.unsigned_integer == other.is_.unsigned_integer;
    return as_integer() >= 0 && other.as_integer() >= 0 && as_integer() == other.as_integer();
  }
  if (kind_ != other.kind_) return false;
  switch (kind_) {
    case Kind::boolean:
      return is_.boolean == other.is_.boolean;
    case Kind::string:
      return *is_.string == *other.is_.string;
    case Kind::array:
      return *is_.array == *other.is_.array;
    case Kind::object:
      return *is_.object == *other.is_.object;
    default:
      return true;
  }
}

template class BasicJson<false>;
template class BasicJson<true>;

std::ostream& operator<<(std::ostream& out, const Json& value) { return out << value.dump_replacing(); }
std::ostream& operator<<(std::ostream& out, const OrderedJson& value) { return out << value.dump_replacing(); }

}  // namespace ganymede
