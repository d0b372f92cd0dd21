#include "core/export/mapped_tensor.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/base/check.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

constexpr std::int64_t kDropped = -1;

[[noreturn]] void refuse(const MappedTensor& tensor, const std::string& message) {
  throw Error(Code::kUsage, message + "; its shape here is " + to_string(tensor.shape),
              {.key = tensor.key});
}

void require_dim(const MappedTensor& tensor, std::size_t dim) {
  if (dim < tensor.shape.size()) return;
  refuse(tensor, "the tensor has no dimension " + std::to_string(dim));
}

/// Most elements of a mapped tensor: so many of the largest type have a size in bytes.
constexpr std::int64_t kElementsMax = std::int64_t{1} << 58U;

void require_size(const MappedTensor& tensor) {
  const auto elements = checked_volume(tensor.shape);
  if (elements && *elements <= kElementsMax) return;
  throw Error(Code::kLimit, "the tensor would have too many elements: " + to_string(tensor.shape),
              {.key = tensor.key});
}

/// Returns the list with `value` before position `at`.
Dims inserted(const Dims& dims, std::size_t at, std::int64_t value) {
  Dims result;
  for (std::size_t d = 0; d <= dims.size(); ++d) {
    if (d == at) result.push_back(value);
    if (d < dims.size()) result.push_back(dims[d]);
  }
  return result;
}

Dims erased(const Dims& dims, std::size_t at) {
  Dims result;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (d != at) result.push_back(dims[d]);
  }
  return result;
}

/// Returns the part of `part` that lies in `region` of the mapped tensor.
std::optional<MappedPart> cut_to(const MappedPart& part, const Box& region) {
  const auto common = intersect(part.target(), region);
  if (!common) return std::nullopt;
  MappedPart cut = part;
  cut.at = common->offset;
  for (std::size_t s = 0; s < part.along.size(); ++s) {
    if (part.along[s] == kDropped) continue;
    const auto d = static_cast<std::size_t>(part.along[s]);
    cut.box.offset[s] += common->offset[d] - part.at[d];
    cut.box.extent[s] = common->extent[d];
  }
  return cut;
}

/// Returns the strides of `strides`, which are those of the other side, for each entry of `along`.
Dims strides_along(const Dims& along, const Dims& strides) {
  Dims result;
  for (const auto d : along) {
    result.push_back(d == kDropped ? 1 : strides[static_cast<std::size_t>(d)]);
  }
  return result;
}

std::int64_t position(const Dims& at, const Dims& strides) {
  return std::inner_product(at.begin(), at.end(), strides.begin(), std::int64_t{0});
}

}  // namespace

Box MappedPart::target() const {
  Box target{at, Dims::filled(at.size(), 1)};
  for (std::size_t s = 0; s < along.size(); ++s) {
    if (along[s] != kDropped) target.extent[static_cast<std::size_t>(along[s])] = box.extent[s];
  }
  return target;
}

MappedTensor mapped(const StoredTensor& stored, std::uint32_t source) {
  const Dims& shape = logical_shape(stored);
  MappedTensor tensor{.key = stored.key,
                      .stored = stored.dtype,
                      .dtype = stored.dtype,
                      .shape = shape,
                      .parts = {}};
  Dims along = Dims::filled(shape.size(), 0);
  std::iota(along.begin(), along.end(), 0);
  if (volume(shape) == 0) return tensor;
  tensor.parts.push_back({source, Box::whole(shape), Dims::filled(shape.size(), 0), along});
  return tensor;
}

MappedTensor narrowed(const MappedTensor& tensor, std::size_t dim, Interval range) {
  require_dim(tensor, dim);
  if (range.begin < 0 || range.end < range.begin || range.end > tensor.shape[dim]) {
    refuse(tensor, "dimension " + std::to_string(dim) + " has no elements " +
                       std::to_string(range.begin) + " to " + std::to_string(range.end));
  }
  Box region = Box::whole(tensor.shape);
  region.offset[dim] = range.begin;
  region.extent[dim] = range.length();
  MappedTensor result{.key = tensor.key,
                      .stored = tensor.stored,
                      .dtype = tensor.dtype,
                      .shape = tensor.shape,
                      .parts = {},
                      .padded = tensor.padded};
  result.shape[dim] = range.length();
  for (const auto& part : tensor.parts) {
    auto cut = cut_to(part, region);
    if (!cut) continue;
    cut->at[dim] -= range.begin;
    result.parts.push_back(*cut);
  }
  return result;
}

MappedTensor joined(std::span<const MappedTensor> tensors, std::size_t dim) {
  CHECK(!tensors.empty());
  MappedTensor result = tensors.front();
  require_dim(result, dim);
  result.shape[dim] = 0;
  result.parts.clear();
  for (const auto& tensor : tensors) {
    Dims rest = tensor.shape;
    if (dim < rest.size()) rest[dim] = tensors.front().shape[dim];
    if (rest != tensors.front().shape || tensor.dtype != result.dtype ||
        tensor.stored != result.stored) {
      refuse(tensor, "it can't be joined along dimension " + std::to_string(dim) + " with " +
                         tensors.front().key + ", which is " +
                         std::string(name_of(tensors.front().dtype)) + " " +
                         to_string(tensors.front().shape) + ", stored as " +
                         std::string(name_of(tensors.front().stored)) + ", while this is " +
                         std::string(name_of(tensor.dtype)) + ", stored as " +
                         std::string(name_of(tensor.stored)));
    }
    for (MappedPart part : tensor.parts) {
      part.at[dim] += result.shape[dim];
      result.parts.push_back(part);
    }
    result.shape[dim] += tensor.shape[dim];
    result.padded = result.padded || tensor.padded;
  }
  require_size(result);
  return result;
}

MappedTensor transposed(const MappedTensor& tensor, const Dims& order) {
  Dims position_of = Dims::filled(tensor.shape.size(), kDropped);
  bool fits = order.size() == tensor.shape.size();
  for (std::size_t d = 0; fits && d < order.size(); ++d) {
    const auto from = static_cast<std::size_t>(order[d]);
    fits = order[d] >= 0 && from < order.size() && position_of[from] == kDropped;
    if (fits) position_of[from] = static_cast<std::int64_t>(d);
  }
  if (!fits) refuse(tensor, "it can't be transposed by " + to_string(order));
  const auto in_order = [&order](const Dims& dims) {
    Dims result;
    for (const auto from : order) result.push_back(dims[static_cast<std::size_t>(from)]);
    return result;
  };
  MappedTensor result = tensor;
  result.shape = in_order(tensor.shape);
  for (auto& part : result.parts) {
    part.at = in_order(part.at);
    for (auto& d : part.along) {
      if (d != kDropped) d = position_of[static_cast<std::size_t>(d)];
    }
  }
  return result;
}

MappedTensor without_dim(const MappedTensor& tensor, std::size_t dim) {
  require_dim(tensor, dim);
  if (tensor.shape[dim] != 1) {
    refuse(tensor, "dimension " + std::to_string(dim) + " can't be left out: its extent is not 1");
  }
  MappedTensor result = tensor;
  result.shape = erased(tensor.shape, dim);
  for (auto& part : result.parts) {
    part.at = erased(part.at, dim);
    for (auto& d : part.along) {
      if (d == static_cast<std::int64_t>(dim)) {
        d = kDropped;
      } else if (d > static_cast<std::int64_t>(dim)) {
        --d;
      }
    }
  }
  return result;
}

MappedTensor with_dim(const MappedTensor& tensor, std::size_t dim) {
  if (dim > tensor.shape.size()) {
    refuse(tensor, "a dimension " + std::to_string(dim) + " can't be added");
  }
  if (tensor.shape.size() == kMaxNdim) refuse(tensor, "it has as many dimensions as can be");
  MappedTensor result = tensor;
  result.shape = inserted(tensor.shape, dim, 1);
  for (auto& part : result.parts) {
    part.at = inserted(part.at, dim, 0);
    for (auto& d : part.along) {
      if (d >= static_cast<std::int64_t>(dim)) ++d;
    }
  }
  return result;
}

MappedTensor padded(const MappedTensor& tensor, std::size_t dim, std::int64_t size) {
  require_dim(tensor, dim);
  if (size < tensor.shape[dim]) {
    refuse(tensor, "it can't be padded to " + std::to_string(size) + " elements along dimension " +
                       std::to_string(dim));
  }
  MappedTensor result = tensor;
  result.padded = result.padded || size > tensor.shape[dim];
  result.shape[dim] = size;
  require_size(result);
  return result;
}

std::vector<MappedTensor> split(const MappedTensor& tensor, std::size_t dim, std::int64_t blocks,
                                std::span<const std::int64_t> shares) {
  require_dim(tensor, dim);
  const bool positive = std::ranges::all_of(
      shares, [&](auto share) { return share > 0 && share <= tensor.shape[dim]; });
  const std::int64_t sum =
      positive ? std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) : 0;
  if (blocks < 1 || blocks > std::max<std::int64_t>(1, tensor.shape[dim]) || !positive || sum < 1 ||
      tensor.shape[dim] % blocks != 0 || tensor.shape[dim] / blocks % sum != 0) {
    refuse(tensor, "dimension " + std::to_string(dim) + " can't be cut into " +
                       std::to_string(blocks) + " blocks of " + std::to_string(sum) +
                       " equal shares");
  }
  const std::int64_t block = tensor.shape[dim] / blocks;
  const std::int64_t unit = block / sum;
  std::vector<MappedTensor> result;
  std::int64_t before = 0;
  for (const auto share : shares) {
    std::vector<MappedTensor> of_blocks;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t begin = b * block + before * unit;
      of_blocks.push_back(narrowed(tensor, dim, {begin, begin + share * unit}));
    }
    result.push_back(joined(of_blocks, dim));
    before += share;
  }
  return result;
}

MappedTensor interleaved(std::span<const MappedTensor> tensors, std::size_t dim,
                         std::int64_t blocks) {
  CHECK(!tensors.empty());
  std::vector<MappedTensor> in_turn;
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (const auto& tensor : tensors) {
      require_dim(tensor, dim);
      const std::int64_t block = tensor.shape[dim] / blocks;
      if (block * blocks != tensor.shape[dim] ||
          blocks > std::max<std::int64_t>(1, tensor.shape[dim])) {
        refuse(tensor, "dimension " + std::to_string(dim) + " can't be cut into " +
                           std::to_string(blocks) + " equal blocks");
      }
      in_turn.push_back(narrowed(tensor, dim, {b * block, (b + 1) * block}));
    }
  }
  return joined(in_turn, dim);
}

std::vector<PieceOf> sources_of(const MappedTensor& tensor, std::int64_t begin, std::int64_t end) {
  const Dims strides = contiguous_strides(tensor.shape);
  std::vector<PieceOf> pieces;
  for (const Box& region : boxes_of_range(Box::whole(tensor.shape), begin, end)) {
    for (const auto& part : tensor.parts) {
      const auto cut = cut_to(part, region);
      if (!cut) continue;
      pieces.push_back({cut->source,
                        {.box = cut->box,
                         .local = position(cut->at, strides) - begin,
                         .strides = strides_along(cut->along, strides)}});
    }
  }
  return pieces;
}

std::vector<PieceOf> targets_of(const Dims& shape, std::span<const MappedBack> parts,
                                std::int64_t begin, std::int64_t end) {
  const Dims strides = contiguous_strides(shape);
  std::vector<PieceOf> pieces;
  for (const Box& region : boxes_of_range(Box::whole(shape), begin, end)) {
    for (const auto& [tensor, part] : parts) {
      const auto common = intersect(part.box, region);
      if (!common) continue;
      Box target = part.target();
      Dims local_strides = Dims::filled(target.ndim(), 1);
      for (std::size_t s = 0; s < part.along.size(); ++s) {
        if (part.along[s] == kDropped) continue;
        const auto d = static_cast<std::size_t>(part.along[s]);
        target.offset[d] += common->offset[s] - part.box.offset[s];
        target.extent[d] = common->extent[s];
        local_strides[d] = strides[s];
      }
      pieces.push_back({tensor,
                        {.box = target,
                         .local = position(common->offset, strides) - begin,
                         .strides = local_strides}});
    }
  }
  return pieces;
}

}  // namespace reprise
