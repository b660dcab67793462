#pragma once
// JSON values in memory: null, a boolean, a number, a string, an array or an object. Members have the names that
// nlohmann/json gave them, and that library still reads and writes the text (json_parse.cpp, json_dump.cpp). Its own
// values are templates throughout, and each file that used them took 10 s to compile where it takes 2 s with these,
// whose functions are compiled once.
//
//   Json run = Json::parse(text);
//   double seconds = run.at("time").at("total_s").get<double>();      // JsonError if it is not there or no number
//   OrderedJson row = {{"instance", name}, {"gpus", 8}, {"range", {low, high}}};
//   for (const auto& [key, value] : run.items()) …

#include <compare>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/json_fwd.hpp"

namespace ganymede {

/// Text that is no JSON, or a value that is absent, of another type or out of range. Readers of a user's files use
/// JsonNode instead, whose errors say where in the file.
struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Where a value stands in a document (RFC 6901): "/platform/nodes", "/pools/0"; "~1" stands for "/" in a key and "~0"
/// for "~".
class JsonPointer {
 public:
  JsonPointer() = default;
  explicit JsonPointer(
      std::string_view text);  ///< throws JsonError unless it is empty or begins with "/", or for another "~"
  bool empty() const { return steps_.empty(); }
  const std::string& back() const { return steps_.back(); }  ///< the last key or index
  const std::vector<std::string>& steps() const { return steps_; }
  JsonPointer parent_pointer() const;  ///< without the last step
  std::string to_string() const;
  friend JsonPointer operator/(JsonPointer pointer, std::string step) {
    pointer.steps_.push_back(std::move(step));
    return pointer;
  }
  bool operator==(const JsonPointer&) const = default;

 private:
  std::vector<std::string> steps_;  // without escapes
};

template <class T>
concept JsonInteger = std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>;
/// A range whose elements become an array; one of pairs with keys, as a map has, becomes an object.
template <class T>
concept JsonRange = std::ranges::input_range<const T> && !std::is_convertible_v<const T&, std::string_view> &&
                    !std::is_convertible_v<const T&, std::string> && !requires {
  typename T::JsonValueItself;
};
template <class T>
concept JsonMap = requires {
  typename T::mapped_type;
  requires std::is_convertible_v<typename T::key_type, std::string_view>;
};

template <bool kOrdered>
class BasicJson {
 public:
  using JsonValueItself = BasicJson;
  using Array = std::vector<BasicJson>;
  using Object = std::conditional_t<kOrdered, std::vector<std::pair<std::string, BasicJson>>,
                                    std::map<std::string, BasicJson, std::less<>>>;
  using const_reference = const BasicJson&;
  using value_type = BasicJson;

  enum class Kind : std::uint8_t { null, boolean, integer, unsigned_integer, floating, string, array, object };

  /// An element of a list in braces, which is moved and not copied into the value.
  class Item {
   public:
    Item(std::initializer_list<Item> list) : value(list) {}
    template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Item> && std::is_convertible_v<T, BasicJson>)
        // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the check does not read what is required
        Item(T&& from)
        : value(std::forward<T>(from)) {}
    mutable BasicJson value;
  };

  BasicJson() noexcept {}
  BasicJson(std::nullptr_t) noexcept {}
  template <class T>
  requires std::is_same_v<T, bool>  // not what converts to bool, such as a pointer
  BasicJson(T value)
  noexcept : kind_(Kind::boolean) { is_.boolean = value; }
  template <std::floating_point T>  // not what converts to a number, such as a char
  BasicJson(T value) noexcept : kind_(Kind::floating) {
    is_.floating = static_cast<double>(value);
  }
  template <JsonInteger T>
  BasicJson(T value) noexcept : kind_(std::is_signed_v<T> ? Kind::integer : Kind::unsigned_integer) {
    if constexpr (std::is_signed_v<T>)
      is_.integer = value;
    else
      is_.unsigned_integer = value;
  }
  BasicJson(const char* text) : BasicJson(std::string(text)) {}
  BasicJson(std::string_view text) : BasicJson(std::string(text)) {}
  BasicJson(std::string text);
  template <JsonRange T>
  BasicJson(const T& range) : BasicJson(JsonMap<T> ? object() : array()) {
    for (const auto& element : range) {
      if constexpr (JsonMap<T>)
        (*this)[element.first] = element.second;
      else
        push_back(element);
    }
  }
  template <class A, class B>
  BasicJson(const std::pair<A, B>& pair) : BasicJson(array()) {
    push_back(pair.first);
    push_back(pair.second);
  }
  /// An object if every element is a list of a string and a value, otherwise an array.
  BasicJson(std::initializer_list<Item> list);
  /// The same value with the other order of members: in theirs, or sorted.
  explicit(false) BasicJson(const BasicJson<!kOrdered>& other);
  BasicJson(const BasicJson& other);
  BasicJson(BasicJson&& other) noexcept : kind_(other.kind_), is_(other.is_) { other.kind_ = Kind::null; }
  BasicJson& operator=(BasicJson other) noexcept {
    swap(other);
    return *this;
  }
  ~BasicJson() {
    if (kind_ >= Kind::string) release();
  }

  static BasicJson array() { return BasicJson(Kind::array); }
  static BasicJson array(std::initializer_list<Item> list);
  static BasicJson object() { return BasicJson(Kind::object); }
  static BasicJson object(std::initializer_list<Item> list);
  /// Reads a text, in which // comments may stand if `comments`. Of members with the same key the last one counts.
  /// Throws JsonError for text that is not JSON, with its place, and for more than 200 levels of nesting.
  static BasicJson parse(std::string_view text, bool comments = false);
  /// The same; null for a text that is not JSON.
  static BasicJson parse_or_null(std::string_view text, bool comments = false);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::null; }
  bool is_boolean() const { return kind_ == Kind::boolean; }
  bool is_number() const { return kind_ >= Kind::integer && kind_ <= Kind::floating; }
  bool is_number_integer() const { return kind_ == Kind::integer || kind_ == Kind::unsigned_integer; }
  bool is_number_unsigned() const { return kind_ == Kind::unsigned_integer; }
  bool is_number_float() const { return kind_ == Kind::floating; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_array() const { return kind_ == Kind::array; }
  bool is_object() const { return kind_ == Kind::object; }
  bool is_structured() const { return kind_ >= Kind::array; }
  const char* type_name() const;  ///< "null", "boolean", "number", "string", "array" or "object"
  /// The number of elements or members; 0 of null and 1 of anything else.
  std::size_t size() const;
  bool empty() const { return size() == 0; }

  /// The value as a boolean, a number, a string or a vector of those. A number is converted as by static_cast.
  /// @throws JsonError if it is of another type
  template <class T>
  T get() const {
    if constexpr (std::is_same_v<T, bool>)
      return as_boolean();
    else if constexpr (std::is_same_v<T, BasicJson>)
      return *this;
    else if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(as_double());
    else if constexpr (std::is_unsigned_v<T>)
      return static_cast<T>(as_unsigned());
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(as_integer());
    else if constexpr (std::is_same_v<T, std::string>)
      return as_string();
    else {
      T out;
      for (const BasicJson& element : elements()) out.push_back(element.template get<typename T::value_type>());
      return out;
    }
  }
  const std::string& as_string() const;  ///< throws JsonError if it is not a string
  /// The same where a text is wanted, as in the row of a table.
  operator std::string() const { return as_string(); }

  /// The element or member. @throws JsonError if it is not there
  const BasicJson& at(std::string_view key) const;
  const BasicJson& at(std::size_t index) const;
  const BasicJson& at(const JsonPointer& pointer) const;
  BasicJson& at(std::string_view key) { return const_cast<BasicJson&>(std::as_const(*this).at(key)); }
  BasicJson& at(std::size_t index) { return const_cast<BasicJson&>(std::as_const(*this).at(index)); }
  BasicJson& at(const JsonPointer& pointer) { return const_cast<BasicJson&>(std::as_const(*this).at(pointer)); }
  // Without these a literal 0 could be an index or a text.
  const BasicJson& at(const char* key) const { return at(std::string_view(key)); }
  BasicJson& at(const char* key) { return at(std::string_view(key)); }
  const BasicJson& at(int index) const { return at(static_cast<std::size_t>(index)); }
  BasicJson& at(int index) { return at(static_cast<std::size_t>(index)); }

  /// The member; a new one, null, if it is not there. A value that is null becomes an object first.
  BasicJson& operator[](std::string_view key);
  BasicJson& operator[](const char* key) { return (*this)[std::string_view(key)]; }
  BasicJson& operator[](const std::string& key) { return (*this)[std::string_view(key)]; }
  /// The value there. What is missing on the way is added: objects, or arrays where the step is a number and the value
  /// null. @throws JsonError for an index that would leave a gap, and if a value on the way is neither
  BasicJson& operator[](const JsonPointer& pointer);
  template <JsonInteger T>
  BasicJson& operator[](T index) {
    return at(static_cast<std::size_t>(index));
  }
  // A constant value cannot be added to.
  const BasicJson& operator[](std::string_view key) const { return at(key); }
  const BasicJson& operator[](const char* key) const { return at(std::string_view(key)); }
  const BasicJson& operator[](const std::string& key) const { return at(std::string_view(key)); }
  const BasicJson& operator[](const JsonPointer& pointer) const { return at(pointer); }
  template <JsonInteger T>
  const BasicJson& operator[](T index) const {
    return at(static_cast<std::size_t>(index));
  }

  bool contains(std::string_view key) const { return member(key) != nullptr; }
  bool contains(const JsonPointer& pointer) const { return find_at(pointer) != nullptr; }
  /// The member as T; `otherwise` if this is an object without it. @throws JsonError if it is of another type than T
  template <class T>
  T value(std::string_view key, const T& otherwise) const {
    const BasicJson* found = required_object().member(key);
    return found ? found->template get<T>() : otherwise;
  }
  std::string value(std::string_view key, const char* otherwise) const { return value(key, std::string(otherwise)); }
  BasicJson value(std::string_view key, std::initializer_list<Item> otherwise) const {
    return value(key, BasicJson(otherwise));
  }

  void push_back(BasicJson value) { elements().push_back(std::move(value)); }
  void push_back(std::initializer_list<Item> list) { push_back(BasicJson(list)); }
  template <class... Parts>
  BasicJson& emplace_back(Parts&&... parts) {
    return elements().emplace_back(std::forward<Parts>(parts)...);
  }
  const BasicJson& front() const { return at(std::size_t{0}); }
  BasicJson& front() { return at(std::size_t{0}); }
  const BasicJson& back() const { return at(size() - 1); }
  BasicJson& back() { return at(size() - 1); }
  /// Adds a member or replaces it, for each member of the other object, which is no part of this value.
  void update(const BasicJson& other);
  /// Changes the value as RFC 7396 says: members of objects are merged level by level, null removes, anything else
  /// replaces. The patch is no part of this value.
  void merge_patch(const BasicJson& patch);
  std::size_t erase(std::string_view key);  ///< the number of members removed: 0 or 1
  std::size_t erase(const char* key) { return erase(std::string_view(key)); }
  void erase(std::size_t index);
  void erase(int index) { erase(static_cast<std::size_t>(index)); }
  void clear();  ///< leaves an empty value of the same type
  void swap(BasicJson& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(is_, other.is_);
  }

  /// Goes through the elements of an array or the members' values of an object; of any other value through itself or,
  /// of null, through nothing.
  template <bool kConst>
  class Iterator {
   public:
    using Value = std::conditional_t<kConst, const BasicJson, BasicJson>;
    using Member = std::conditional_t<kConst, typename Object::const_iterator, typename Object::iterator>;
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = BasicJson;
    using difference_type = std::ptrdiff_t;
    using pointer = Value*;
    using reference = Value&;

    Iterator() = default;
    explicit Iterator(Value* element) : element_(element) {}
    explicit Iterator(Member member) : is_member_(true), member_(member) {}
    template <bool kOther>
    requires(kConst && !kOther) Iterator(const Iterator<kOther>& other)
        : is_member_(other.is_member_), element_(other.element_), member_(other.member_) {}
    Value& operator*() const { return is_member_ ? member_->second : *element_; }
    Value* operator->() const { return &**this; }
    const std::string& key() const { return member_->first; }  ///< of an object's member
    Value& value() const { return **this; }
    Iterator& operator++() {
      if (is_member_)
        ++member_;
      else
        ++element_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    Iterator& operator--() {
      if (is_member_)
        --member_;
      else
        --element_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return element_ == other.element_ && member_ == other.member_; }

   private:
    template <bool>
    friend class Iterator;
    friend class BasicJson;
    bool is_member_ = false;
    Value* element_ = nullptr;
    Member member_{};
  };
  using iterator = Iterator<false>;
  using const_iterator = Iterator<true>;

  const_iterator begin() const;
  const_iterator end() const;
  iterator begin();
  iterator end();
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  const_iterator find(std::string_view key) const;  ///< end() if there is none
  iterator find(std::string_view key);
  void erase(const_iterator at);  ///< an element or member of this value

  /// The members of an object, as pairs of a key and a value; no members of null, which becomes an object first where
  /// it can be changed. @throws JsonError for another type
  Object& items();
  const Object& items() const;
  /// The elements of an array. A value that is null becomes an array first. @throws JsonError for another type
  Array& elements();
  const Array& elements() const;

  /// The text: on one line, or with members on lines of their own that are indented by so many spaces a level.
  /// @throws JsonError if a string is not UTF-8
  std::string dump(int indent = -1) const;
  /// The same; what is not UTF-8 becomes U+FFFD.
  std::string dump_replacing(int indent = -1) const;
  std::string dump_ascii() const;  ///< on one line; what is not ASCII is escaped

  /// Numbers are compared by value, 1 and 1.0 are equal; OrderedJson compares the order of members too.
  friend bool operator==(const BasicJson& a, const BasicJson& b) { return a.equals(b); }
  /// Compares two numbers. @throws JsonError if one is something else
  friend std::partial_ordering operator<=>(const BasicJson& a, const BasicJson& b) { return a.order(b); }

 private:
  explicit BasicJson(Kind kind);
  void release();  // frees what a string, an array or an object has
  const BasicJson* member(std::string_view key) const;
  const BasicJson* find_at(const JsonPointer& pointer) const;
  const BasicJson& required_object() const;
  bool as_boolean() const;
  double as_double() const;
  std::int64_t as_integer() const;
  std::uint64_t as_unsigned() const;
  bool equals(const BasicJson& other) const;
  std::partial_ordering order(const BasicJson& other) const;
  [[noreturn]] void wrong_type(std::string_view wanted) const;

  Kind kind_ = Kind::null;
  union {
    bool boolean;
    std::int64_t integer;
    std::uint64_t unsigned_integer;
    double floating;
    std::string* string;
    Array* array;
    Object* object;
  } is_ = {.unsigned_integer = 0};

  friend class BasicJson<!kOrdered>;
};

extern template class BasicJson<false>;
extern template class BasicJson<true>;

/// Writes a value as its text, for messages of tests.
std::ostream& operator<<(std::ostream& out, const Json& value);
std::ostream& operator<<(std::ostream& out, const OrderedJson& value);

}  // namespace ganymede
