#pragma once
// Names of JSON values (common/json_value.hpp) and of their readers (common/json.hpp), for headers that only pass them
// on.

#include <string>

namespace ganymede {

template <bool kOrdered>
class BasicJson;
using Json = BasicJson<false>;        ///< an object's members are sorted by their keys
using OrderedJson = BasicJson<true>;  ///< an object's members stay in the order in which they were added
class JsonPointer;
struct JsonError;

class JsonNode;  // common/json.hpp
class JsonObject;

/// One option "--set /json/pointer=value". The value is read as JSON if it parses as JSON, else as a string.
struct JsonOverride {
  std::string pointer;
  std::string value;
};

}  // namespace ganymede
