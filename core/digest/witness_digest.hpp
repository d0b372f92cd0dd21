#pragma once
// Computes the digest of a tensor's content. A program publishes digests to show which values it
// holds (docs/trainers.md). If a tensor is split into disjoint boxes, the digests of the boxes add
// up, modulo 2^64, to the digest of the tensor. Every sharding therefore gives the same digest.

#include <cstdint>
#include <string_view>

#include "core/base/bytes.hpp"
#include "core/geometry/box.hpp"

namespace reprise {

/// Returns the number that identifies the tensor in its digest. It is the first 8 bytes, read as
/// little-endian, of the SHA-256 of these bytes: the key, a zero byte and the dtype's name.
std::uint64_t witness_key(std::string_view key, std::string_view dtype);

/// Returns the digest of a box of a tensor of this shape. `elements` contains exactly the elements
/// of the box, row-major and little-endian.
std::uint64_t witness_digest(std::uint64_t key, DType dtype, const Dims& shape, const Box& box,
                             ByteSpan elements);

}  // namespace reprise
