// The digest of a box for programs in other languages: python/reprise/witness.py calls it. Built as
// libreprise_witness.so beside the program.

#include <cstddef>
#include <cstdint>

#include "core/digest/box_digest.hpp"

/// Returns the digest of docs/trainers.md of a box; `element` is its elements, row-major. Each
/// array has `dims` entries, at least one. `width` is the size of an element: 1, 2, 4, 8 or 16
/// bytes.
extern "C" __attribute__((visibility("default"))) std::uint64_t reprise_witness_digest(
    std::uint64_t key, std::size_t width, std::size_t dims, const std::int64_t* shape,
    const std::int64_t* at, const std::int64_t* size, const std::byte* element) {
  return reprise::box_digest(key, width, {{shape, dims}, {at, dims}, {size, dims}}, element);
}
