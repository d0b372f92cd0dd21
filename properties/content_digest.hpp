#pragma once
// Digests a job's content to one number that is the same under every sharding. The parts of the
// ranks add up modulo 2^64, so nothing needs to be gathered.

#include <array>
#include <cstdint>
#include <functional>

#include "core/state/state_dict.hpp"

namespace reprise {

/// Returns the sum of the digests of a leaf's elements (core/geometry/element_digest.hpp). `key`
/// identifies the tensor.
using LeafDigest = std::function<std::uint64_t(const TensorLeaf& leaf, std::uint64_t key)>;
/// Digests leaves in host memory; elements are aligned to their size, which is at most 8 bytes.
std::uint64_t host_leaf_digest(const TensorLeaf& leaf, std::uint64_t key);

/// Returns this rank's part: every element of the tensors whose main copy it holds, by key, global
/// index and bits. `of_leaf` computes the sum where the leaf's memory is.
std::uint64_t content_digest(const StateDict& state, const LeafDigest& of_leaf = host_leaf_digest);

/// Returns the part of a value that only one rank adds: a common state without its layout entries.
std::uint64_t value_digest(const Value& value);

/// Splits a digest into two numbers whose sums over up to 2^31 ranks fit an int64, and joins them.
std::array<std::int64_t, 2> halves_of(std::uint64_t digest);
std::uint64_t digest_of(const std::array<std::int64_t, 2>& sums);

}  // namespace reprise
