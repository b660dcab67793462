#pragma once
// Kernels over contiguous elements, whose threads load and store 16 bytes at once. A compiler cannot do so by itself,
// because it does not know how pointers are aligned.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernel/device_code.hpp"

namespace ganymede::kernel::cuda {

/// Bytes that a thread of a GPU can load or store by one instruction.
inline constexpr std::size_t kWidestAccess = 16;

/// An array whose elements a kernel writes and does not read. Null: the array is not there, and nothing is written.
template <class E>
struct Written {
  E* at;
};

/// Neighbouring elements, aligned for the widest accesses that they fill.
template <class E, std::size_t N>
struct alignas(std::min(kWidestAccess, N * sizeof(E))) Vector {
  E of[N];
};

/// The bytes that one instruction moves, whatever they hold. A compiler would load eight numbers of bf16 by several.
struct [[gnu::may_alias]] alignas(kWidestAccess) WideWords {
  std::uint32_t of[kWidestAccess / sizeof(std::uint32_t)];
};

template <class E, std::size_t N>
GANYMEDE_DEVICE void copy_vector(Vector<E, N>& to, const Vector<E, N>& from) {
  if constexpr (sizeof to % kWidestAccess == 0)
    for (std::size_t k = 0; k < sizeof to / kWidestAccess; ++k)
      reinterpret_cast<WideWords*>(&to)[k] = reinterpret_cast<const WideWords*>(&from)[k];
  else
    to = from;
}

/// N elements of an array from `first` on, held by a thread: a `const E*` is read, an `E*` is read and written back, a
/// Written<E> is only written. From N = 2 on the address of the first one must be aligned as a Vector is.
template <std::size_t N, class Array>
struct Held;
template <std::size_t N, class E>
struct Held<N, const E*> : Vector<E, N> {
  GANYMEDE_DEVICE Held(const E* array, std::size_t first) {
    copy_vector<E, N>(*this, *reinterpret_cast<const Vector<E, N>*>(array + first));
  }
  GANYMEDE_DEVICE void store(const E*, std::size_t) const {}
};
template <std::size_t N, class E>
struct Held<N, E*> : Held<N, const E*> {
  GANYMEDE_DEVICE Held(E* array, std::size_t first) : Held<N, const E*>(array, first) {}
  GANYMEDE_DEVICE void store(E* array, std::size_t first) const {
    copy_vector<E, N>(*reinterpret_cast<Vector<E, N>*>(array + first), *this);
  }
};
template <std::size_t N, class E>
struct Held<N, Written<E>> : Vector<E, N> {
  GANYMEDE_DEVICE Held(Written<E>, std::size_t) : Vector<E, N>{} {}
  GANYMEDE_DEVICE void store(Written<E> array, std::size_t first) const {
    if (array.at != nullptr) copy_vector<E, N>(*reinterpret_cast<Vector<E, N>*>(array.at + first), *this);
  }
};

/// True if Held<N, Array> may begin at the array's first element.
template <std::size_t N, class E>
bool is_aligned(E* array) {
  return reinterpret_cast<std::uintptr_t>(array) % alignof(Vector<std::remove_const_t<E>, N>) == 0;
}
template <std::size_t N, class E>
bool is_aligned(Written<E> array) {
  return is_aligned<N>(array.at);
}

/// The body of each_element(): a thread's N elements.
template <std::size_t N, class Body, class... Arrays>
struct VectorBody {
  std::size_t count;
  bool aligned;
  Body body;
  std::tuple<Arrays...> arrays;

  GANYMEDE_DEVICE void operator()(std::size_t vector) const {
    const std::size_t first = vector * N;
    if (aligned && first + N <= count) return visit<N>(first);
    for (std::size_t i = first; i < first + N && i < count; ++i) visit<1>(i);
  }

 private:
  template <std::size_t M>
  GANYMEDE_DEVICE void visit(std::size_t first) const {
    std::apply([&](const Arrays&... array) { visit_held<M>(first, array..., Held<M, Arrays>(array, first)...); },
               arrays);
  }
  template <std::size_t M>
  GANYMEDE_DEVICE void visit_held(std::size_t first, const Arrays&... array, Held<M, Arrays>... held) const {
    for (std::size_t k = 0; k < M; ++k) body(first + k, held.of[k]...);
    (held.store(array, first), ...);
  }
};

/// Calls body(i, elements) for every i below `count` with the i-th element of each array, which is a `const E*`, an
/// `E*` or a Written<E> (see Held). A thread has as many as fill 16 bytes of the widest type, in vectors where all
/// arrays are aligned. `launcher` is a Timeline or a Device.
template <class Launcher, class Body, class... Arrays>
void each_element(Launcher& launcher, std::size_t count, const Body& body, Arrays... arrays) {
  constexpr std::size_t kWidest = std::max({sizeof(std::declval<Held<1, Arrays>>().of[0])...});
  constexpr std::size_t kVector = kWidestAccess / kWidest;
  const bool aligned = (is_aligned<kVector>(arrays) && ...);
  launcher.each((count + kVector - 1) / kVector,
                VectorBody<kVector, Body, Arrays...>{count, aligned, body, {arrays...}});
}

}  // namespace ganymede::kernel::cuda
