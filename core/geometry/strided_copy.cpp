#include "core/geometry/strided_copy.hpp"

namespace reprise {
namespace {

/// Adds an outermost dimension to `copy`, or merges it into the run or the dimension before it.
void add_outer(StridedCopy& copy, const StridedCopy::Dim& outer) {
  if (copy.dims == 0 && outer.source_step == copy.run_bytes &&
      outer.target_step == copy.run_bytes) {
    copy.run_bytes *= outer.count;
    return;
  }
  copy.runs *= outer.count;
  if (copy.dims > 0) {
    StridedCopy::Dim& inner = copy.dim[copy.dims - 1];
    if (outer.source_step == inner.source_step * inner.count &&
        outer.target_step == inner.target_step * inner.count) {
      inner.count *= outer.count;
      return;
    }
  }
  copy.dim[copy.dims++] = outer;
}

/// Returns the number of parts of each run. The number is exact if all runs start at the same
/// offset from a 16-byte boundary of the target; otherwise it is an upper limit.
std::int64_t parts_of_run(const StridedCopy& copy) {
  if (copy.run_bytes <= kBlockBytes) return 1;
  bool alike = true;
  for (std::int32_t d = 0; d < copy.dims; ++d) {
    alike = alike && copy.dim[d].target_step % kBlockBytes == 0;
  }
  const std::int64_t lead = alike ? lead_of(copy.target) : kBlockBytes - 1;
  return (lead + copy.run_bytes + kBlockBytes - 1) / kBlockBytes;
}

}  // namespace

StridedCopy strided_copy(const ConstStridedView& source, const StridedView& target,
                         const Dims& extents, std::size_t element_bytes) {
  const auto width = static_cast<std::int64_t>(element_bytes);
  StridedCopy copy;
  copy.source = source.data;
  copy.target = target.data;
  if (volume(extents) == 0 || width == 0) return copy;
  copy.run_bytes = width;
  copy.runs = 1;
  for (std::size_t d = extents.size(); d-- > 0;) {
    if (extents[d] == 1) continue;
    add_outer(copy, {extents[d], source.strides[d] * width, target.strides[d] * width});
  }
  copy.run_parts = parts_of_run(copy);
  return copy;
}

Packing packing_of(const Dims& extents, const Dims& strides) {
  Packing packing{extents, {}};
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (strides[d] == 0 && extents[d] > 1) packing.extents[d] = 1;
  }
  packing.strides = contiguous_strides(packing.extents);
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (packing.extents[d] != extents[d]) packing.strides[d] = 0;
  }
  return packing;
}

}  // namespace reprise
