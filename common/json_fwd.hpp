#pragma once
// Names of JSON values (common/json_value.hpp) and of their readers (common/json.hpp), for headers that only pass them
// on.

namespace ganymede {

template <bool kOrdered>
class BasicJson;
using Json = BasicJson<false>;        ///< an object's members are sorted by their keys
using OrderedJson = BasicJson<true>;  ///< an object's members stay in the order in which they were added
class JsonPointer;
struct JsonError;

class JsonNode;  // common/json.hpp
class JsonObject;
struct JsonOverride;

}  // namespace ganymede
