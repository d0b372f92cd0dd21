#pragma once
// Computes a digest of a job's content: one number that is the same under every sharding. Each rank
// computes its part; the parts are added modulo 2^64, so nothing needs to be gathered.

#include <array>
#include <cstdint>
#include <functional>

#include "core/state/state_dict.hpp"

namespace reprise {

/// Returns the sum of the digests of a leaf's elements (core/geometry/element_digest.hpp). `key`
/// identifies the tensor.
using LeafDigest = std::function<std::uint64_t(const TensorLeaf& leaf, std::uint64_t key)>;
/// Computes the digest of a leaf in host memory. Each element must be aligned to its size; for
/// elements of more than 8 bytes, an alignment of 8 is enough.
std::uint64_t host_leaf_digest(const TensorLeaf& leaf, std::uint64_t key);

/// Returns this rank's part of the digest: the sum of the hashes of all elements whose main copy
/// this rank has. An element's hash depends on its key, its global index and its bits. `of_leaf`
/// computes the sum for one leaf, whatever kind of memory the leaf is in.
std::uint64_t content_digest(const StateDict& state, const LeafDigest& of_leaf = host_leaf_digest);

/// Returns the digest of a value, such as a common state, without its layout entries. Only one rank
/// adds this digest to the sum, because all ranks have the same value.
std::uint64_t value_digest(const Value& value);

/// halves_of() splits a digest into two numbers. Their sums over up to 2^31 ranks fit in an int64,
/// and digest_of() combines these sums into a digest.
std::array<std::int64_t, 2> halves_of(std::uint64_t digest);
std::uint64_t digest_of(const std::array<std::int64_t, 2>& sums);

}  // namespace reprise
