#include "core/geometry/piece.hpp"

#include <algorithm>
#include <cstring>

namespace reprise {
namespace {

/// Dimensions of a copy with those merged that are contiguous on both sides; innermost first.
struct Loop {
  std::int64_t count;
  std::int64_t source_stride;
  std::int64_t target_stride;
};

struct Loops {
  std::array<Loop, kMaxRank> dims;
  std::size_t size = 0;
};

Loops loops_of(const Dims& source, const Dims& target, const Dims& extents) {
  Loops loops;
  for (std::size_t d = extents.size(); d-- > 0;) {
    if (extents[d] == 1) continue;
    if (loops.size > 0) {
      Loop& inner = loops.dims[loops.size - 1];
      if (source[d] == inner.source_stride * inner.count &&
          target[d] == inner.target_stride * inner.count) {
        inner.count *= extents[d];
        continue;
      }
    }
    loops.dims[loops.size++] = {extents[d], source[d], target[d]};
  }
  return loops;
}

void copy_run(const std::byte* source, std::byte* target, const Loop& run, std::size_t bytes) {
  if (run.source_stride == 1 && run.target_stride == 1) {
    std::memcpy(target, source, static_cast<std::size_t>(run.count) * bytes);
    return;
  }
  const auto source_step = run.source_stride * static_cast<std::int64_t>(bytes);
  const auto target_step = run.target_stride * static_cast<std::int64_t>(bytes);
  for (std::int64_t i = 0; i < run.count; ++i) {
    std::memcpy(target + i * target_step, source + i * source_step, bytes);
  }
}

void copy_loops(const std::byte* source, std::byte* target, const Loops& loops, std::size_t level,
                std::size_t bytes) {
  const Loop& loop = loops.dims[level];
  if (level == 0) return copy_run(source, target, loop, bytes);
  const auto width = static_cast<std::int64_t>(bytes);
  for (std::int64_t i = 0; i < loop.count; ++i) {
    copy_loops(source + i * loop.source_stride * width, target + i * loop.target_stride * width,
               loops, level - 1, bytes);
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

Piece contiguous_piece(const Box& box) { return {box, 0, contiguous_strides(box.extent)}; }

std::vector<Box> boxes_of_range(const Box& box, std::int64_t begin, std::int64_t end) {
  CHECK(0 <= begin && begin <= end && end <= box.elements(), begin, end, box);
  std::vector<Box> boxes;
  const Dims strides = contiguous_strides(box.extent);
  while (begin < end) {
    const Dims at = index_at(begin, box.extent);
    // The outermost dimension d such that a run of whole rows below d starts here and fits.
    std::size_t dim = box.rank();
    while (dim > 0 && begin % strides[dim - 1] == 0 && strides[dim - 1] <= end - begin) --dim;
    if (dim == box.rank()) {  // no dimensions: one element
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
  if (volume(extents) == 0) return;
  const Loops loops = loops_of(source.strides, target.strides, extents);
  if (loops.size == 0) {
    std::memcpy(target.data, source.data, element_bytes);
    return;
  }
  copy_loops(source.data, target.data, loops, loops.size - 1, element_bytes);
}

}  // namespace reprise
