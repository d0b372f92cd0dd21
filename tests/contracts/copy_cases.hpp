#pragma once
// Lists cases of strided copies. The tests run them on every implementation: the CPU's loops, the
// kernel's code run on the host, and a device.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/base/random.hpp"
#include "reprise/tensor.hpp"

namespace reprise::contracts {

/// How the source or the target of a copy lies in memory.
struct CopySide {
  Dims strides;            ///< in elements
  std::size_t offset = 0;  ///< number of bytes before the first element, which need not be aligned
  std::size_t bytes = 0;   ///< size of the memory, with some bytes after the last element
};

struct CopyCase {
  std::string name;
  Dims extents;
  std::size_t element_bytes = 1;
  CopySide source;
  CopySide target;

  Bytes source_memory() const {
    Bytes memory(source.bytes);
    for (std::size_t i = 0; i < memory.size(); ++i) {
      memory[i] = static_cast<std::byte>((i * 37 + i / 251) % 253);
    }
    return memory;
  }
  Bytes target_memory() const { return Bytes(target.bytes, std::byte{0xEE}); }

  /// Computes the target's memory after the copy, element by element.
  Bytes expected() const {
    const Bytes from = source_memory();
    Bytes to = target_memory();
    const std::int64_t count = volume(extents);
    for (std::int64_t i = 0; i < count; ++i) {
      const Dims index = index_at(i, extents);
      std::size_t s = 0;
      std::size_t t = 0;
      for (std::size_t d = 0; d < extents.size(); ++d) {
        s += static_cast<std::size_t>(index[d] * source.strides[d]);
        t += static_cast<std::size_t>(index[d] * target.strides[d]);
      }
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(source.offset + s * element_bytes),
                  element_bytes,
                  to.begin() + static_cast<std::ptrdiff_t>(target.offset + t * element_bytes));
    }
    return to;
  }
};

/// Returns a side whose dimensions have the given `order` in memory, from the slowest-varying to
/// the fastest-varying, with `gap` unused elements after each row.
inline CopySide side_of(const Dims& extents, std::size_t element_bytes,
                        const std::vector<std::size_t>& order, std::int64_t gap,
                        std::size_t offset) {
  CopySide side{Dims::filled(extents.size(), 0), offset, 0};
  std::int64_t next = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    side.strides[order[i]] = next;
    next = next * std::max<std::int64_t>(extents[order[i]], 1) + gap;
  }
  side.bytes = offset + static_cast<std::size_t>(next) * element_bytes + 3;
  return side;
}

inline std::vector<std::size_t> row_major(std::size_t ndim) {
  std::vector<std::size_t> order(ndim);
  for (std::size_t d = 0; d < ndim; ++d) order[d] = d;
  return order;
}

/// Generates a copy with 1 to 8 dimensions and arbitrary extents, orders, gaps and alignments.
inline CopyCase drawn_copy(std::uint64_t seed) {
  Stream random = Stream(seed).split("copy");
  const std::size_t ndim = 1 + seed % kMaxNdim;
  CopyCase drawn;
  drawn.element_bytes = std::size_t{1} << random.below(5);
  for (std::size_t d = 0; d < ndim; ++d) {
    const auto most = ndim <= 2 ? 40U : ndim <= 4 ? 7U : 3U;
    drawn.extents.push_back(static_cast<std::int64_t>(1 + random.below(most)));
  }
  const auto order = [&] {
    auto drawn_order = row_major(ndim);
    for (std::size_t d = ndim; random.below(3) == 0 && d > 1; --d) {
      std::swap(drawn_order[d - 1], drawn_order[random.below(d)]);
    }
    return drawn_order;
  };
  const auto side = [&] {
    const auto gap = static_cast<std::int64_t>(random.below(2) * random.below(4));
    return side_of(drawn.extents, drawn.element_bytes, order(), gap, random.below(33));
  };
  drawn.source = side();
  drawn.target = side();
  drawn.name = "drawn from " + std::to_string(seed);
  return drawn;
}

/// Returns a copy of `bytes` consecutive bytes. The source and the target start `from` and `to`
/// bytes after an aligned address.
inline CopyCase run_case(std::int64_t bytes, std::size_t from, std::size_t to) {
  return {.name = "run of " + std::to_string(bytes) + " from " + std::to_string(from) + " to " +
                  std::to_string(to),
          .extents = {bytes},
          .element_bytes = 1,
          .source = side_of({bytes}, 1, {0}, 0, from),
          .target = side_of({bytes}, 1, {0}, 0, to)};
}

inline std::vector<CopyCase> copy_cases() {
  std::vector<CopyCase> cases;
  for (const std::int64_t bytes : {1, 15, 16, 17, 31, 32, 33, 64, 100}) {
    for (std::size_t from = 0; from < 16; ++from) {
      for (const std::size_t to : {0U, 1U, 4U, 8U, 15U}) {
        cases.push_back(run_case(bytes, from, to));
      }
    }
  }
  for (std::uint64_t seed = 0; seed < 400; ++seed) cases.push_back(drawn_copy(seed));
  for (const Dims& extents : {Dims{}, Dims{0}, Dims{3, 0, 2}, Dims{1, 1, 1}}) {
    const auto order = row_major(extents.size());
    cases.push_back({.name = "of shape " + to_string(extents),
                     .extents = extents,
                     .element_bytes = 4,
                     .source = side_of(extents, 4, order, 0, 4),
                     .target = side_of(extents, 4, order, 1, 3)});
  }
  CopyCase repeated{.name = "one element over and over",
                    .extents = {5, 70},
                    .element_bytes = 2,
                    .source = side_of({5, 70}, 2, {0, 1}, 0, 2),
                    .target = side_of({5, 70}, 2, {0, 1}, 2, 6)};
  repeated.source.strides = Dims::filled(2, 0);
  cases.push_back(repeated);
  cases.push_back(run_case(std::int64_t{3} << 19U, 0, 0));  // long runs are copied by separate code
  cases.push_back(run_case((std::int64_t{3} << 19U) + 5, 3, 10));
  return cases;
}

}  // namespace reprise::contracts
