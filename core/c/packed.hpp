#pragma once
// Reads buffers that describe many tensors or paths: words, and the texts that they count off.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "reprise/state.hpp"

namespace reprise::c {

/// A buffer of a caller's, and how far it was read. reprise/c.h has its layout.
struct Packed {
  std::span<const std::int64_t> words;
  std::string_view texts;
};

/// Throws USAGE for a buffer that ends too early or too late, or has an impossible number.
void add_tensors(State& state, Packed packed);
void set_paths(State& state, Packed packed);

/// Returns `count` numbers of a caller's, one for each dimension. Throws USAGE for a negative
/// count, UNSUPPORTED for too many dimensions.
Dims dims_of(const std::int64_t* numbers, std::int64_t count);
/// Throws USAGE for a number that is no rp_memory.
MemoryKind memory_of(std::int64_t number);
/// Throws USAGE for a number that is no DType.
DType dtype_of_number(std::int64_t number);

}  // namespace reprise::c
