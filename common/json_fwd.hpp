#pragma once
// Names of JSON values, for headers that only pass them on (common/json_value.hpp).

namespace ganymede {

template <bool kOrdered>
class BasicJson;
using Json = BasicJson<false>;        ///< an object's members are sorted by their keys
using OrderedJson = BasicJson<true>;  ///< an object's members stay in the order in which they were added
class JsonPointer;
struct JsonError;

}  // namespace ganymede
