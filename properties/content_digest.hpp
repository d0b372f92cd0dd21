#pragma once
// One number for a job's content, the same under every sharding. The parts of the ranks add up,
// modulo 2^64, so that nothing needs to be gathered.

#include <array>
#include <cstdint>
#include <functional>

#include "core/state/state_dict.hpp"

namespace reprise {

/// What a leaf's pieces add, `key` standing for the tensor: the sum of their elements' digests
/// (core/geometry/element_digest.hpp).
using LeafDigest = std::function<std::uint64_t(const TensorLeaf& leaf, std::uint64_t key)>;
/// Of leaves in host memory, whose elements stand at multiples of what they are wide, 8 at most.
std::uint64_t host_leaf_digest(const TensorLeaf& leaf, std::uint64_t key);

/// This rank's part: over the tensors of which it holds the main copy, each element by key, global
/// index and bits. `of_leaf`: who sums up where the leaves are.
std::uint64_t content_digest(const StateDict& state, const LeafDigest& of_leaf = host_leaf_digest);

/// What values add, on one rank alone: for a common state without what depends on the layout.
std::uint64_t value_digest(const Value& value);

/// As two numbers whose sums over up to 2^31 ranks fit an int64, and back from the sums.
std::array<std::int64_t, 2> halves_of(std::uint64_t digest);
std::uint64_t digest_of(const std::array<std::int64_t, 2>& sums);

}  // namespace reprise
