#include "core/geometry/piece.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/geometry/strided_copy.hpp"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace reprise {
namespace {

/// Copies a run.
struct Plainly {
  void operator()(const RunPlace& at, std::size_t bytes) const {
    std::memcpy(at.target, at.source, bytes);
  }
};

#if defined(__x86_64__)
constexpr std::int64_t kCacheLine = 64;

/// Copies a run of whole cache lines without reading the target into the cache first, which takes
/// longer than the copy.
struct PastTheCache {
  void operator()(const RunPlace& at, std::size_t bytes) const {
    for (std::size_t done = 0; done < bytes; done += sizeof(__m128i)) {
      const auto* const from = reinterpret_cast<const __m128i*>(at.source + done);
      _mm_stream_si128(reinterpret_cast<__m128i*>(at.target + done), _mm_loadu_si128(from));
    }
  }
};

/// True if the runs are whole cache lines of a large target with gaps between the runs. Such a
/// target is no buffer that is soon read again.
bool goes_past_the_cache(const StridedCopy& copy) {
  constexpr std::int64_t kLarge = std::int64_t{64} << 10U;
  if (copy.bytes() < kLarge || copy.dims == 0) return false;
  if (copy.dim[0].target_step == copy.run_bytes) return false;
  std::int64_t all =
      copy.run_bytes | static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(copy.target));
  for (std::int32_t d = 0; d < copy.dims; ++d) all |= copy.dim[d].target_step;
  return all % kCacheLine == 0;
}
#endif

/// Copies all runs of the innermost `level` dimensions. The first run is at `place`.
template <class CopyRun>
void copy_level(const StridedCopy& copy, std::int32_t level, const RunPlace& place,
                const CopyRun& copy_run) {
  const auto bytes = static_cast<std::size_t>(copy.run_bytes);
  if (level == 0) return copy_run(place, bytes);
  const StridedCopy::Dim& dim = copy.dim[level - 1];
  for (std::int64_t i = 0; i < dim.count; ++i) {
    const RunPlace inner{place.source + i * dim.source_step, place.target + i * dim.target_step};
    if (level == 1) {
      copy_run(inner, bytes);
    } else {
      copy_level(copy, level - 1, inner, copy_run);
    }
  }
}

}  // namespace

std::int64_t local_offset(const Piece& piece, const Dims& index) {
  CHECK(index.size() == piece.strides.size(), index, piece.strides);
  std::int64_t offset = piece.local;
  for (std::size_t d = 0; d < index.size(); ++d) {
    offset += (index[d] - piece.box.offset[d]) * piece.strides[d];
  }
  return offset;
}

bool has_elements_apart(const Piece& piece) {
  const Dims& extent = piece.box.extent;
  if (piece.box.empty() || piece.strides == contiguous_strides(extent)) return true;
  std::vector<std::pair<std::int64_t, std::int64_t>> by_stride;
  for (std::size_t d = 0; d < extent.size(); ++d) {
    if (extent[d] > 1) by_stride.emplace_back(piece.strides[d], extent[d]);
  }
  std::sort(by_stride.begin(), by_stride.end());
  std::int64_t farthest = 0;  // of the dimensions so far
  for (const auto& [stride, count] : by_stride) {
    std::int64_t span = 0;
    if (stride <= farthest || __builtin_mul_overflow(stride, count - 1, &span) ||
        __builtin_add_overflow(farthest, span, &farthest)) {
      return false;
    }
  }
  return true;
}

Piece contiguous_piece(const Box& box) { return {box, 0, contiguous_strides(box.extent)}; }

std::vector<Box> boxes_of_range(const Box& box, std::int64_t begin, std::int64_t end) {
  CHECK(0 <= begin && begin <= end && end <= box.elements(), begin, end, box);
  std::vector<Box> boxes;
  const Dims strides = contiguous_strides(box.extent);
  while (begin < end) {
    const Dims at = index_at(begin, box.extent);
    // Finds the outermost dimension `dim` for which a whole row starts at `begin` and ends at or
    // before `end`. A row of dimension d consists of all elements that have the same indices in
    // dimensions 0 to d.
    std::size_t dim = box.ndim();
    while (dim > 0 && begin % strides[dim - 1] == 0 && strides[dim - 1] <= end - begin) --dim;
    if (dim == box.ndim()) {  // no dimensions: the box is one element
      boxes.push_back(box);
      break;
    }
    const std::int64_t rows = std::min((end - begin) / strides[dim], box.extent[dim] - at[dim]);
    Box part = box;
    for (std::size_t d = 0; d <= dim; ++d) part.offset[d] = box.offset[d] + at[d];
    for (std::size_t d = 0; d < dim; ++d) part.extent[d] = 1;
    part.extent[dim] = rows;
    boxes.push_back(part);
    begin += rows * strides[dim];
  }
  return boxes;
}

std::vector<Piece> pieces_of_range(const Box& box, std::int64_t begin, std::int64_t end) {
  std::vector<Piece> pieces;
  std::int64_t local = 0;
  for (const Box& part : boxes_of_range(box, begin, end)) {
    pieces.push_back({part, local, contiguous_strides(part.extent)});
    local += part.elements();
  }
  return pieces;
}

void copy_strided(const ConstStridedView& source, const StridedView& target, const Dims& extents,
                  std::size_t element_bytes) {
  const StridedCopy copy = strided_copy(source, target, extents, element_bytes);
  if (copy.runs == 0) return;
#if defined(__x86_64__)
  if (goes_past_the_cache(copy)) {
    copy_level(copy, copy.dims, {copy.source, copy.target}, PastTheCache{});
    _mm_sfence();  // so that other threads see the stores no later than plain ones
    return;
  }
#endif
  copy_level(copy, copy.dims, {copy.source, copy.target}, Plainly{});
}

}  // namespace reprise
