#pragma once
// Copies structs whose first field is the size that the caller knows.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "reprise/error.hpp"

namespace reprise::c {

template <class T>
concept Sized = std::is_trivially_copyable_v<T> && requires(T t) {
  t.struct_size;
};

[[noreturn]] inline void refuse(Code code, const std::string& what) { throw Error(code, what); }

/// Throws USAGE unless the pointer is given.
inline void require(const void* pointer, const char* what) {
  if (pointer == nullptr) refuse(Code::kUsage, std::string(what) + ": NULL was passed");
}

/// Returns a struct of the caller's; what a smaller one lacks is 0. Throws USAGE if there is none,
/// or if it has something where this version knows no field.
template <Sized T>
T taken(const T* given, const char* what) {
  require(given, what);
  const std::size_t size = given->struct_size;
  if (size < sizeof size) {
    refuse(Code::kUsage, std::string(what) + ": struct_size is " + std::to_string(size) +
                             "; set it to the size of the struct");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + std::min(size, sizeof(T)), bytes + size, [](auto b) { return b != 0; })) {
    refuse(Code::kUsage, std::string(what) + ": this version of the library does not know " +
                             "all fields that are set; it knows " + std::to_string(sizeof(T)) +
                             " bytes of " + std::to_string(size));
  }
  T copy{};
  std::memcpy(&copy, bytes, std::min(size, sizeof(T)));
  return copy;
}

/// Fills a struct of the caller's, as far as its size allows; does nothing if there is none. Throws
/// USAGE for a size of 0.
template <Sized T>
void give(T* into, T values, const char* what) {
  if (into == nullptr) return;
  const std::size_t size = into->struct_size;
  if (size < sizeof size) refuse(Code::kUsage, std::string(what) + ": struct_size is not set");
  values.struct_size = size;
  std::memcpy(into, &values, std::min(size, sizeof(T)));
}

/// Returns one of several values, which a caller names by its place. Throws USAGE for any other
/// number.
template <class T, std::size_t N>
T choice(const std::array<T, N>& values, std::int32_t number, const char* what) {
  if (number >= 0 && static_cast<std::size_t>(number) < N) {
    return values[static_cast<std::size_t>(number)];
  }
  refuse(Code::kUsage, std::string(what) + ": " + std::to_string(number) + " is no choice");
}

}  // namespace reprise::c
