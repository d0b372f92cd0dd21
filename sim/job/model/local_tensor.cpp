#include "sim/job/model/local_tensor.hpp"

#include <algorithm>

namespace reprise::sim {
namespace {

/// Consecutive local indices along one dimension; their global indices are consecutive, too.
/// `global` is the global index of the first.
struct Run {
  Interval local;
  std::int64_t global = 0;
};

/// Splits the local indices `wanted` into ranges, each within one global interval.
std::vector<Run> runs_of(const std::vector<Interval>& global, Interval wanted) {
  std::vector<Run> runs;
  std::int64_t at = 0;  // local index where `part` begins
  for (const Interval& part : global) {
    const Interval local{std::max(wanted.begin, at), std::min(wanted.end, at + part.length())};
    if (local.length() > 0) runs.push_back({local, part.begin + local.begin - at});
    at += part.length();
  }
  return runs;
}

/// Splits `box` into parts, each of which is also a box in global indices. Calls visit(local box,
/// global offset) for each part.
template <class Visit>
void for_each_part(const LocalTensor& tensor, const Box& box, const Visit& visit) {
  if (box.empty()) return;
  std::vector<std::vector<Run>> runs;
  std::size_t parts = 1;
  for (std::size_t d = 0; d < box.ndim(); ++d) {
    runs.push_back(runs_of(tensor.global[d], box.interval(d)));
    parts *= runs.back().size();
  }
  for (std::size_t part = 0; part < parts; ++part) {
    Box local = box;
    Dims offset = box.offset;
    std::size_t rest = part;
    for (std::size_t d = box.ndim(); d-- > 0;) {
      const Run& run = runs[d][rest % runs[d].size()];
      rest /= runs[d].size();
      local.offset[d] = run.local.begin;
      local.extent[d] = run.local.length();
      offset[d] = run.global;
    }
    visit(local, offset);
  }
}

}  // namespace

LocalTensor local_tensor(const ParameterSpec& spec, const Placement& placement, const Mesh& mesh,
                         GroupRank member, ChunkRule slice) {
  Dims component = spec.shape;
  if (spec.fused.components > 1) component[spec.fused.dim] /= spec.fused.components;
  const Box box = placement.box(component, mesh, member, slice);
  LocalTensor tensor{box.extent, {}};
  for (std::size_t d = 0; d < box.ndim(); ++d) tensor.global.push_back({box.interval(d)});
  if (spec.fused.components > 1) {
    const std::size_t d = spec.fused.dim;
    tensor.shape[d] *= spec.fused.components;
    for (std::int64_t c = 1; c < spec.fused.components; ++c) {
      const std::int64_t shift = c * component[d];
      tensor.global[d].push_back({box.interval(d).begin + shift, box.interval(d).end + shift});
    }
  }
  return tensor;
}

std::vector<Piece> pieces_packed(const LocalTensor& tensor, std::span<const Box> boxes) {
  std::vector<Piece> pieces;
  std::int64_t begin = 0;
  for (const Box& box : boxes) {
    for_each_part(tensor, box, [&](const Box& local, const Dims& offset) {
      const Dims at = relative_to(local, box.offset).offset;
      pieces.push_back({{offset, local.extent},
                        begin + linear_index(at, box.extent),
                        contiguous_strides(box.extent)});
    });
    begin += box.elements();
  }
  return pieces;
}

std::vector<Piece> pieces_in_place(const LocalTensor& tensor, std::span<const Box> boxes) {
  std::vector<Piece> pieces;
  for (const Box& box : boxes) {
    for_each_part(tensor, box, [&](const Box& local, const Dims& offset) {
      pieces.push_back({{offset, local.extent},
                        linear_index(local.offset, tensor.shape),
                        contiguous_strides(tensor.shape)});
    });
  }
  return pieces;
}

std::int64_t elements_of(std::span<const Box> boxes) {
  std::int64_t elements = 0;
  for (const Box& box : boxes) elements += box.elements();
  return elements;
}

std::vector<BoxCopy> packing(const Dims& shape, std::span<const Box> boxes, const std::byte* array,
                             std::byte* packed, std::size_t element_bytes) {
  std::vector<BoxCopy> copies;
  for (const Box& box : boxes) {
    if (box.empty()) continue;
    const auto at = static_cast<std::size_t>(linear_index(box.offset, shape));
    copies.push_back({{array + at * element_bytes, contiguous_strides(shape)},
                      {packed, contiguous_strides(box.extent)},
                      box.extent,
                      element_bytes});
    packed += static_cast<std::size_t>(box.elements()) * element_bytes;
  }
  return copies;
}

std::vector<BoxCopy> unpacking(const Dims& shape, std::span<const Box> boxes,
                               const std::byte* packed, std::byte* array,
                               std::size_t element_bytes) {
  std::vector<BoxCopy> copies;
  for (const Box& box : boxes) {
    if (box.empty()) continue;
    const auto at = static_cast<std::size_t>(linear_index(box.offset, shape));
    copies.push_back({{packed, contiguous_strides(box.extent)},
                      {array + at * element_bytes, contiguous_strides(shape)},
                      box.extent,
                      element_bytes});
    packed += static_cast<std::size_t>(box.elements()) * element_bytes;
  }
  return copies;
}

}  // namespace reprise::sim
