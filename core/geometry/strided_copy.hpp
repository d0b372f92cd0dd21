#pragma once
// Divides a strided copy into runs for the CPU and into parts of at most 16 bytes for GPU threads.
// Both use the same description, and the code that moves a part also runs on the host.
//
//   source  ab..cd..ef..      runs of 2 bytes, one dim {count 3, steps 4 and 2}
//   target  abcdef

#include <cstddef>
#include <cstdint>

#include "core/base/execution_space.hpp"
#include "core/geometry/block16.hpp"
#include "core/geometry/piece.hpp"

namespace reprise {

/// A strided copy as a list of runs. Dimensions that are contiguous on both sides belong to the
/// run; other dimensions that continue each other are merged. This is plain data, because kernels
/// read tables of such copies.
struct StridedCopy {
  struct Dim {
    std::int64_t count = 0;
    std::int64_t source_step = 0;  ///< bytes from one element of the source to the next
    std::int64_t target_step = 0;
  };

  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  std::int64_t run_bytes = 0;   ///< length of a run, which is contiguous on both sides
  std::int64_t runs = 0;        ///< 0 if there is nothing to copy
  std::int64_t run_parts = 0;   ///< number of parts of each run; see move_part()
  std::int64_t first_part = 0;  ///< in a table, the number of parts of all earlier copies
  std::int32_t dims = 0;
  Dim dim[kMaxNdim];  ///< innermost first

  std::int64_t parts() const { return runs * run_parts; }
  std::int64_t bytes() const { return runs * run_bytes; }
};

/// A copy that is contiguous on both sides, in as few bytes as possible, because kernels take
/// tables of them as parameters.
struct ContiguousCopy {
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  std::uint32_t bytes = 0;
  std::uint32_t first_part = 0;  ///< as in StridedCopy
};

/// Describes the copy that copy_strided() makes. Source strides may be 0.
StridedCopy strided_copy(const ConstStridedView& source, const StridedView& target,
                         const Dims& extents, std::size_t element_bytes);

/// Describes row-major memory with room for exactly the elements of a view that has `extents` and
/// `strides`. A dimension with stride 0 is stored once and keeps stride 0.
struct Packing {
  Dims extents;
  Dims strides;
};
Packing packing_of(const Dims& extents, const Dims& strides);

/// The start of one run of a copy, in source and target.
struct RunPlace {
  const std::byte* source;
  std::byte* target;
};
REPRISE_HD inline RunPlace run_place(const StridedCopy& copy, std::int64_t run) {
  RunPlace place{copy.source, copy.target};
  for (std::int32_t d = 0; d < copy.dims; ++d) {
    const StridedCopy::Dim& dim = copy.dim[d];
    const std::int64_t index = run % dim.count;
    run /= dim.count;
    place.source += index * dim.source_step;
    place.target += index * dim.target_step;
  }
  return place;
}

/// Moves `bytes` bytes word by word. Both addresses and `bytes` must be multiples of the word size.
template <class Word>
REPRISE_HD inline void move_words(const std::byte* source, std::byte* target, std::int64_t bytes) {
  struct [[gnu::may_alias]] Alias {
    Word word;
  };
  constexpr auto kWidth = static_cast<std::int64_t>(sizeof(Word));
  for (std::int64_t at = 0; at < bytes; at += kWidth) {
    *reinterpret_cast<Alias*>(target + at) = *reinterpret_cast<const Alias*>(source + at);
  }
}

/// Moves a few bytes in the widest words that both sides allow.
REPRISE_HD inline void move_few(const std::byte* source, std::byte* target, std::int64_t bytes) {
  const std::int64_t all = lead_of(source) | lead_of(target) | bytes;
  if (all % 8 == 0) return move_words<std::uint64_t>(source, target, bytes);
  if (all % 4 == 0) return move_words<std::uint32_t>(source, target, bytes);
  if (all % 2 == 0) return move_words<std::uint16_t>(source, target, bytes);
  move_words<std::uint8_t>(source, target, bytes);
}

/// Moves part number `part` of a run of `bytes` bytes. Part p consists of the bytes that belong in
/// the p-th aligned 16-byte block of the target; the first and the last part may have fewer than 16
/// bytes, or none. A run of up to 16 bytes is one part. Adjacent threads move adjacent parts, so a
/// warp stores whole cache lines.
REPRISE_HD inline void move_part_of_run(const RunPlace& run, std::int64_t bytes,
                                        std::int64_t part) {
  if (bytes <= kBlockBytes) return move_few(run.source, run.target, bytes);
  const std::int64_t at = part * kBlockBytes - lead_of(run.target);
  const std::int64_t begin = at < 0 ? 0 : at;
  const std::int64_t end = at + kBlockBytes < bytes ? at + kBlockBytes : bytes;
  if (end - begin == kBlockBytes) {
    *reinterpret_cast<Block16*>(run.target + begin) =
        load_block(run.source + begin, {run.source, run.source + bytes});
  } else if (end > begin) {
    move_few(run.source + begin, run.target + begin, end - begin);
  }
}

/// Moves part number `part` of a copy. The parts of each run follow those of the run before.
REPRISE_HD inline void move_part(const StridedCopy& copy, std::int64_t part) {
  move_part_of_run(run_place(copy, part / copy.run_parts), copy.run_bytes, part % copy.run_parts);
}
REPRISE_HD inline void move_part(const ContiguousCopy& copy, std::int64_t part) {
  move_part_of_run({copy.source, copy.target}, copy.bytes, part);
}

/// All parts of a table of copies, numbered in one sequence. A single kernel does all these copies.
/// `Copy` is StridedCopy or ContiguousCopy.
template <class Copy>
struct CopyTable {
  const Copy* copies = nullptr;  ///< must not contain empty copies
  std::int64_t count = 0;

  REPRISE_HD void operator()(std::int64_t part) const {
    std::int64_t low = 0;  // the copy that contains `part` has an index in [low, high)
    std::int64_t high = count;
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (copies[middle].first_part <= part ? low : high) = middle;
    }
    move_part(copies[low], part - copies[low].first_part);
  }
};

}  // namespace reprise
