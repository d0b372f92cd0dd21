#include <algorithm>

#include "core/geometry/folded_shape.hpp"
#include "core/geometry/placement.hpp"
#include "core/reshard/reshard_seamed.hpp"

namespace reprise {
namespace {

std::vector<Box> cut_boxes(const StoredTensor& tensor, const Cut& cut, const ReshardSeams& seams) {
  const Dims& shape = logical_shape(tensor);
  if (cut.dim + (tensor.folded.empty() ? 0 : 1) >= shape.size()) {
    throw Error(Code::kUsage,
                "a tensor of shape " + shape_text(all_extents(tensor)) +
                    " can't be split along dimension " + std::to_string(cut.dim),
                {.key = tensor.key});
  }
  if (cut.parts < 1) throw Error(Code::kUsage, "less than one part", {.key = tensor.key});
  return seams.divide(shape, cut);
}

std::vector<Box> stored_boxes(const StoredTensor& tensor) {
  std::vector<Box> boxes;
  for (const auto& chunk : tensor.chunks) {
    for (const auto& piece : pieces_of(tensor, chunk)) {
      if (!piece.box.empty()) boxes.push_back(piece.box);
    }
  }
  std::sort(boxes.begin(), boxes.end());
  return boxes;
}

std::vector<Box> boxes_of(const StoredTensor& tensor, const CutRule& rule,
                          const ReshardSeams& seams) {
  const Dims& shape = logical_shape(tensor);
  const auto cut = rule ? rule(std::string(name_of(tensor)), shape) : std::nullopt;
  auto boxes = cut ? cut_boxes(tensor, *cut, seams) : stored_boxes(tensor);
  if (boxes.empty()) boxes.push_back(Box::whole(shape));
  return boxes;
}

class Shares {
 public:
  explicit Shares(std::int32_t writers) : shares_(static_cast<std::size_t>(writers)) {}

  void add_tensor(std::uint32_t index, const StoredTensor& tensor, const std::vector<Box>& boxes) {
    for (std::size_t p = 0; p < boxes.size(); ++p) {
      WriterShare& share = boxes.size() == 1 ? lightest() : shares_[p % shares_.size()];
      share.bytes += static_cast<std::uint64_t>(boxes[p].elements()) * size_of(tensor.dtype);
      share.parts.push_back({index, boxes[p]});
    }
  }

  void add_tensor(std::uint32_t index, const StoredTensor& tensor,
                  const std::vector<OwnedBox>& boxes) {
    for (const OwnedBox& owned : boxes) {
      WriterShare& share = shares_[static_cast<std::size_t>(owned.writer)];
      share.bytes += static_cast<std::uint64_t>(owned.box.elements()) * size_of(tensor.dtype);
      share.parts.push_back({index, owned.box});
    }
  }

  void add_object(std::uint32_t index, const StoredObject& object) {
    WriterShare& share = lightest();
    share.bytes += object.range.size;
    share.objects.push_back(index);
  }

  std::vector<WriterShare> take() { return std::move(shares_); }

 private:
  WriterShare& lightest() {
    return *std::min_element(
        shares_.begin(), shares_.end(),
        [](const WriterShare& a, const WriterShare& b) { return a.bytes < b.bytes; });
  }

  std::vector<WriterShare> shares_;
};

/// Plans all writers' shares. `add` adds the tensor with the given index.
template <class Add>
std::vector<WriterShare> plan_with(const Catalog& catalog, std::int32_t writers, const Add& add) {
  if (writers < 1) throw Error(Code::kUsage, "a checkpoint needs at least one writer");
  Shares shares(writers);
  for (std::uint32_t t = 0; t < catalog.tensors.size(); ++t) add(shares, t);
  for (std::uint32_t o = 0; o < catalog.objects.size(); ++o) {
    shares.add_object(o, catalog.objects[o]);
  }
  return shares.take();
}

}  // namespace

std::vector<Box> ceil_parts(const Dims& shape, const Cut& cut) {
  std::vector<Box> boxes;
  const std::int64_t length = shape[cut.dim];
  const std::int64_t parts = std::min(cut.parts, std::max<std::int64_t>(length, 1));
  // The requested number of parts determines the chunk size, even if that number exceeds the
  // length. The last parts are then empty and are left out.
  for (std::int64_t p = 0; p < cut.parts && static_cast<std::int64_t>(boxes.size()) < parts; ++p) {
    const Interval interval = ceil_chunk(length, cut.parts, p);
    Box box = Box::whole(shape);
    box.offset[cut.dim] = interval.begin;
    box.extent[cut.dim] = interval.length();
    if (box.empty()) break;
    boxes.push_back(box);
  }
  return boxes;
}

std::vector<WriterShare> plan_reshard(const Catalog& catalog, const CutRule& rule,
                                      std::int32_t writers) {
  return plan_reshard(catalog, rule, writers, {});
}

std::vector<WriterShare> plan_boxes(const Catalog& catalog, const BoxRule& rule,
                                    std::int32_t writers) {
  return plan_with(catalog, writers, [&](Shares& shares, std::uint32_t t) {
    const auto boxes = rule(t);
    if (boxes.empty()) {
      shares.add_tensor(t, catalog.tensors[t], boxes_of(catalog.tensors[t], {}, {}));
    } else {
      shares.add_tensor(t, catalog.tensors[t], boxes);
    }
  });
}

std::vector<WriterShare> plan_reshard(const Catalog& catalog, const CutRule& rule,
                                      std::int32_t writers, const ReshardSeams& seams) {
  return plan_with(catalog, writers, [&](Shares& shares, std::uint32_t t) {
    shares.add_tensor(t, catalog.tensors[t], boxes_of(catalog.tensors[t], rule, seams));
  });
}

}  // namespace reprise
