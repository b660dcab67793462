#pragma once
// A document is described once: for its struct there is a function describe(Walk&, Struct&), which names each member,
// says what it means and which values it may have. Whatever follows from that is a walk over the description: the
// reader with located errors, the writer and the JSON Schema (forms.hpp).
//
//   void describe(Walk& walk, Energy& energy) {
//     walk.member("kwh", energy.kwh, {.says = "at the data centre's meter", .low = 0, .required = true});
//     walk.member_unless("grid", energy.grid, std::string(), {.says = "sources of the carbon intensities"});
//   }

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/json_fwd.hpp"
#include "common/units.hpp"
#include "common/usd.hpp"

namespace ganymede::documents {

/// The ends of an interval; an end that is not finite is null in JSON where its member says so.
struct Interval {
  double low = 0;
  double high = 0;
  bool operator==(const Interval&) const = default;
};

/// Ends of an interval of dollars, written as decimal strings; "inf" where there is no price.
struct UsdInterval {
  double low = 0;
  double high = 0;
  bool operator==(const UsdInterval&) const = default;
};

/// An object, or a value of any type, that the document holds as it was given, as the text of its JSON.
struct JsonText {
  std::string text;  ///< empty: none
  bool operator==(const JsonText&) const = default;
};

/// The meaning and the values of a member, beside its type in C++.
struct About {
  std::string_view says = {};  ///< what it means: an English phrase, for schema and documentation
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false;                      ///< `low` itself is not allowed
  bool required = false;                       ///< a document without it is refused
  bool unknown_is_null = false;                ///< a number that is not finite is null; a JsonText is any value
  bool filled = false;                         ///< a text that is not empty
  bool with_unit = false;                      ///< a quantity above zero, as a text such as "790GB/s"
  std::string_view items = {};                 ///< of a list that has at least one: "phase"
  std::vector<std::string_view> choices = {};  ///< the texts that it may be; empty: any
};

inline const About kRequired = {.required = true};
inline const About kCount = {.low = 0};
inline const About kShare = {.low = 0, .high = 1};
inline const About kText = {.required = true, .filled = true};
inline const About kAmount = {.low = 0, .required = true};

class Walk;
template <class T>
concept Described = requires(Walk& walk, T& value) {
  describe(walk, value);
};

/// Goes through a document's members, in the order in which they are written.
class Walk {
 public:
  virtual ~Walk() = default;

  /// A member that is always written. One that is absent where a document is read leaves `value` as it is, unless it is
  /// required. Of an optional, nothing is written as null.
  template <class T>
  void member(std::string_view name, T& value, const About& about = {}) {
    if (!enter_member(name, about, true)) return;
    visit(value, about);
    leave_member();
  }
  /// A member that is left out where `value` equals `otherwise`.
  template <class T>
  void member_unless(std::string_view name, T& value, const T& otherwise, const About& about = {}) {
    if (!enter_member(name, about, !(value == otherwise))) return;
    visit(value, about);
    leave_member();
  }
  /// A member that is left out where there is no value.
  template <class T>
  void member_if_any(std::string_view name, std::optional<T>& value, const About& about = {}) {
    if (!enter_member(name, about, value.has_value())) return;
    if (!value) value.emplace(T{});
    visit(*value, about);
    leave_member();
  }
  /// An object among the members whose own members `body` describes, of no struct of its own.
  template <class Body>
  void object(std::string_view name, const Body& body, const About& about = {}) {
    if (!enter_member(name, about, true)) return;
    if (enter_object("", about)) {
      body();
      leave_object();
    }
    leave_member();
  }
  /// The cells of a row, of a list of rows whose columns another member names.
  template <class... Cells>
  void row(Cells&... cells) {
    enter_list(sizeof...(cells), true);
    std::size_t index = 0;
    ((enter_element(index++), visit(cells, {}), leave_element()), ...);
    leave_list();
  }
  /// True if members that are there or not together are to be visited: when writing, if they are there.
  virtual bool takes(bool /*present*/) const { return true; }
  /// The members of objects of one kind, if this is of that kind. Only those of that kind must have them.
  template <class Body>
  void kind(bool is_it, const Body& body) {
    if (!enter_kind(is_it)) return;
    body();
    leave_kind();
  }
  /// An enumeration, whose values have these names in their order.
  template <class Enum, class Names>
  void one_of(std::string_view name, Enum& value, const Names& names, About about = {}) {
    about.choices.assign(names.begin(), names.end());
    std::string text(names[static_cast<std::size_t>(value)]);
    member(name, text, about);
    value = static_cast<Enum>(std::find(names.begin(), names.end(), text) - names.begin());
  }
  /// True where the document is read: then rules between members are checked, and refuse what breaks them. A place is a
  /// path from the object whose members are visited, such as "phases/3/network".
  virtual bool reads() const { return false; }
  virtual void refuse(std::string_view /*place*/, std::string_view /*why*/) {}
  virtual void expect(std::string_view /*place*/, std::string_view /*expected*/) {}
  virtual void expect_choice(std::string_view /*place*/, const std::vector<std::string>& /*names*/) {}
  /// The amount once more, as a number in dollars, for programs that only plot and compare; it is not read.
  void number_of(std::string_view name, const MicroUsd& amount) { derived(name, usd_of(amount)); }
  void number_of(std::string_view name, const MicroUsdPerHour& price) { derived(name, usd_of(price)); }
  /// A number that follows from other members; it is not read.
  virtual void derived(std::string_view name, double value, const About& about = {}) = 0;
  /// A value that is the same in all documents of a kind; it is not read.
  virtual void constant(std::string_view name, const OrderedJson& value, const About& about = {}) = 0;

  template <class T>
  void visit(T& value, const About& about) {
    if constexpr (requires { T::kIsRow; }) {
      describe(*this, value);
    } else if constexpr (Described<T>) {
      if (!enter_object(type_name<T>(), about)) return;
      describe(*this, value);
      leave_object();
    } else if constexpr (std::is_same_v<T, int>) {
      std::int64_t whole = value;
      integer(whole, about, std::numeric_limits<int>::max());
      if (whole != value) value = static_cast<int>(whole);  // a walk that writes changes nothing
    } else {
      leaf(value, about);
    }
  }
  template <class T>
  void visit(std::optional<T>& value, const About& about) {
    if (!enter_nullable(value.has_value())) {
      value.reset();
      return;
    }
    if (!value) value.emplace(T{});
    visit(*value, about);
    leave_nullable();
  }
  template <class T>
  void visit(std::vector<T>& list, const About& about) {
    list.resize(enter_list(list.size(), false));
    for (std::size_t i = 0; i < list.size(); ++i) {
      enter_element(i);
      visit(list[i], about);
      leave_element();
    }
    leave_list();
    if (!about.items.empty()) at_least_one(list.empty(), about.items);
  }
  void visit(std::vector<double>& list, const About& about) {
    leaf(list, about);
    if (!about.items.empty()) at_least_one(list.empty(), about.items);
  }
  /// An object whose keys are names.
  template <class T>
  void visit(std::map<std::string, T>& map, const About& about) {
    std::vector<std::string> names;
    for (const auto& entry : map) names.push_back(entry.first);
    names = enter_map(std::move(names));
    for (const std::string& name : names) {
      enter_entry(name);
      visit(map[name], about);
      leave_entry();
    }
  }

 protected:
  Walk() = default;
  Walk(const Walk&) = default;
  Walk& operator=(const Walk&) = default;

  /// False if the member is not to be visited: it is absent, or not written.
  virtual bool enter_member(std::string_view name, const About& about, bool present) = 0;
  virtual void leave_member() = 0;
  /// False if the walk knows this type already (a schema refers to it by its name).
  virtual bool enter_object(std::string_view type, const About& about) = 0;
  virtual void leave_object() = 0;
  /// False if the value is null.
  virtual bool enter_nullable(bool present) = 0;
  virtual void leave_nullable() = 0;
  /// Returns how many elements the list has or gets; a row has as many as `size` says.
  virtual std::size_t enter_list(std::size_t size, bool row) = 0;
  virtual void enter_element(std::size_t index) = 0;
  virtual void leave_element() = 0;
  virtual void leave_list() = 0;
  virtual void at_least_one(bool /*empty*/, std::string_view /*what*/) {}
  /// Returns the names that the map has or gets.
  virtual std::vector<std::string> enter_map(std::vector<std::string> names) = 0;
  virtual void enter_entry(std::string_view name) = 0;
  virtual void leave_entry() = 0;
  virtual bool enter_kind(bool is_it) { return is_it; }
  virtual void leave_kind() {}

  virtual void integer(std::int64_t& value, const About& about, std::int64_t most) = 0;
  void leaf(std::int64_t& value, const About& about) {
    integer(value, about, std::numeric_limits<std::int64_t>::max());
  }
  virtual void leaf(double& value, const About& about) = 0;
  virtual void leaf(bool& value, const About& about) = 0;
  virtual void leaf(std::uint64_t& value, const About& about) = 0;
  virtual void leaf(std::string& value, const About& about) = 0;
  virtual void leaf(MicroUsd& value, const About& about) = 0;
  virtual void leaf(MicroUsdPerHour& value, const About& about) = 0;
  virtual void leaf(Interval& value, const About& about) = 0;
  virtual void leaf(UsdInterval& value, const About& about) = 0;
  virtual void leaf(JsonText& value, const About& about) = 0;
  virtual void leaf(std::vector<double>& value, const About& about) = 0;
  template <class Unit>
  void leaf(Quantity<Unit>& value, const About& about) {
    if (about.with_unit)
      with_unit(value);
    else
      leaf(value.si, about);
  }
  virtual void with_unit(Seconds& value) = 0;
  virtual void with_unit(Bytes& value) = 0;
  virtual void with_unit(BytesPerSecond& value) = 0;
  virtual void with_unit(FlopsPerSecond& value) = 0;

 private:
  template <class T>
  static constexpr std::string_view type_name() {
    if constexpr (requires { T::kTypeName; })
      return T::kTypeName;
    else
      return "";
  }
};

}  // namespace ganymede::documents
