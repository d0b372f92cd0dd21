#pragma once
// Adds tensors and paths to a state, as a program in C describes them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/state.hpp"

namespace reprise::c {

using Numbers = std::span<const std::int64_t>;

/// A box of a tensor in memory; see rp_part.
struct GivenPart {
  std::int64_t memory = 0;  ///< rp_memory
  void* data = nullptr;
  Numbers offset;
  Numbers extent;
  Numbers strides;  ///< empty: row-major
};

/// A tensor, with any number of dimensions; see rp_tensor.
struct GivenTensor {
  std::string key;
  std::int64_t dtype = 0;
  std::int64_t replica = 0;
  Numbers shape;
  std::vector<GivenPart> parts;
};

/// Adds a tensor. If it has more dimensions than a state knows, the last of those stands for the
/// rest; throws UNSUPPORTED if a part is cut along one of them, or they do not lie together in
/// memory. Throws USAGE for numbers that mean nothing.
void add(State& state, const GivenTensor& tensor);

/// A buffer of a caller's; reprise/c.h has its layout.
struct Packed {
  Numbers words;
  std::string_view texts;
};

/// These throw USAGE for a buffer that ends too early or too late, or has an impossible number.
void add_tensors(State& state, Packed packed);
void set_paths(State& state, Packed packed);

}  // namespace reprise::c
