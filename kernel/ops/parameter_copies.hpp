#pragma once
// Where the copies of parameters are that products and convolutions read in a backend that stores bf16.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace ganymede::kernel {

/// Arrays of floats, each with a place for a copy of as many numbers of 2 bytes.
class ParameterCopies {
 public:
  /// Adds `count` floats at `first` whose copy begins at `copy`, until the result and its copies are gone.
  std::shared_ptr<void> add(const float* first, std::size_t count, void* copy) {
    arrays_->push_back({first, count, static_cast<std::byte*>(copy)});
    return {nullptr, [arrays = arrays_, first](void*) {
              std::erase_if(*arrays, [first](const Array& array) { return array.first == first; });
            }};
  }
  /// The copy of the float at `parameter`; null: it is in none of the arrays.
  void* of(const float* parameter) const {
    for (const Array& array : *arrays_)
      if (parameter >= array.first && parameter < array.first + array.count)
        return array.copy + 2 * (parameter - array.first);
    return nullptr;
  }

 private:
  struct Array {
    const float* first;
    std::size_t count;
    std::byte* copy;
  };
  std::shared_ptr<std::vector<Array>> arrays_ = std::make_shared<std::vector<Array>>();
};

}  // namespace ganymede::kernel
