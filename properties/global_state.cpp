#include "properties/global_state.hpp"

#include <algorithm>
#include <map>

#include "core/base/check.hpp"
#include "core/geometry/compare.hpp"
#include "core/state/by_key.hpp"
#include "properties/finding_code.hpp"

namespace reprise {
namespace {

std::int64_t at_in(const Dims& shape, const Dims& index) { return linear_index(index, shape); }

/// A tensor that is being assembled.
struct Growing {
  GlobalTensor tensor;
  std::vector<bool> filled;
};

class Assembly {
 public:
  explicit Assembly(judged::Findings& findings) : findings_(findings) {}

  void add(const TensorLeaf& leaf, GlobalRank rank) {
    auto [entry, fresh] = tensors_.try_emplace(leaf.key);
    Growing& growing = entry->second;
    if (fresh) start(growing, leaf);
    if (!agrees(growing.tensor, leaf, rank)) return;
    for (const auto& piece : leaf.pieces) add(growing, leaf, piece, rank);
  }

  void add(const ObjectLeaf& leaf, GlobalRank rank) {
    const std::string key = stored_key(leaf);
    const auto [entry, fresh] = objects_.try_emplace(key, leaf.value);
    if (!fresh && !(entry->second == leaf.value)) {
      findings_.push_back({judged::kReplicaMismatch, key, "two ranks hold different values", rank});
    }
  }

  GlobalState finish(Value common) {
    GlobalState state;
    state.common = std::move(common);
    for (auto& [key, growing] : tensors_) {
      const auto gap = std::find(growing.filled.begin(), growing.filled.end(), false);
      if (gap != growing.filled.end()) {
        const Dims index = index_at(gap - growing.filled.begin(), growing.tensor.shape);
        findings_.push_back(
            {Code::kCoverageGap, key, "no rank holds element " + to_string(index), {}});
      }
      state.tensors.push_back(std::move(growing.tensor));
    }
    for (auto& [key, value] : objects_) state.objects.push_back({key, std::move(value)});
    return state;
  }

 private:
  static void start(Growing& growing, const TensorLeaf& leaf) {
    const auto elements = static_cast<std::size_t>(volume(leaf.shape));
    growing.tensor = {leaf.key, leaf.dtype, leaf.shape, {}, {}};
    growing.tensor.data.resize(elements * size_of(leaf.dtype));
    growing.filled.resize(elements);
  }

  bool agrees(const GlobalTensor& tensor, const TensorLeaf& leaf, GlobalRank rank) {
    if (tensor.dtype != leaf.dtype) {
      findings_.push_back({Code::kDtypeDrift, leaf.key, "ranks disagree on the type", rank});
      return false;
    }
    if (!(tensor.shape == leaf.shape)) {
      findings_.push_back({Code::kShapeDrift, leaf.key, "ranks disagree on the shape", rank});
      return false;
    }
    return true;
  }

  void add(Growing& growing, const TensorLeaf& leaf, const Piece& piece, GlobalRank rank) {
    const std::size_t width = size_of(leaf.dtype);
    const Dims& shape = leaf.shape;
    if (!contains(Box::whole(shape), piece.box)) {
      findings_.push_back(
          {Code::kShapeDrift, leaf.key,
           "box " + to_string(piece.box) + " extends beyond shape " + to_string(shape), rank});
      return;
    }
    bool differs = false;
    for (std::int64_t i = 0; i < piece.box.elements(); ++i) {
      const Dims within = index_at(i, piece.box.extent);
      Dims index = piece.box.offset;
      std::int64_t local = piece.local;
      for (std::size_t d = 0; d < within.size(); ++d) {
        index[d] += within[d];
        local += within[d] * piece.strides[d];
      }
      const auto global = static_cast<std::size_t>(at_in(shape, index));
      const std::byte* from = leaf.data + static_cast<std::size_t>(local) * width;
      std::byte* to = growing.tensor.data.data() + global * width;
      if (!growing.filled[global]) {
        std::copy_n(from, width, to);
        growing.filled[global] = true;
      } else if (!differs && !std::equal(from, from + width, to)) {
        differs = true;
        findings_.push_back({judged::kReplicaMismatch, leaf.key,
                             "element " + to_string(index) + " is " +
                                 print_element(leaf.dtype, from) + " here and " +
                                 print_element(leaf.dtype, to) + " on a lower rank",
                             rank});
      }
    }
    growing.tensor.holders.push_back({piece.box, rank});
  }

  judged::Findings& findings_;
  std::map<std::string, Growing> tensors_;
  std::map<std::string, Value> objects_;
};

}  // namespace

const GlobalTensor* GlobalState::tensor(std::string_view key) const {
  return find_by_key(tensors, key);
}
const GlobalObject* GlobalState::object(std::string_view key) const {
  return find_by_key(objects, key);
}

GlobalState assemble(std::span<const RankState> ranks, judged::Findings& findings) {
  CHECK(!ranks.empty());
  Assembly assembly(findings);
  const Value& common = ranks.front().state->common;
  for (const auto& [rank, state] : ranks) {
    for (const auto& leaf : state->tensors) assembly.add(leaf, rank);
    for (const auto& leaf : state->objects) assembly.add(leaf, rank);
    const auto differing = differences(common, state->common, 1);
    if (differing.empty()) continue;
    findings.push_back({Code::kCommonStateDiverges, differing.front().path,
                        differing.front().left + " on rank " +
                            std::to_string(ranks.front().rank.value) + ", here " +
                            differing.front().right,
                        rank});
  }
  return assembly.finish(common);
}

Bytes elements_of(const GlobalTensor& tensor, const Box& box) {
  Bytes elements;
  pack_elements(tensor, box, elements);
  return elements;
}

Bytes elements_of(const TensorLeaf& leaf, const Piece& piece) {
  Bytes elements;
  pack_elements(leaf, piece, elements);
  return elements;
}

void pack_elements(const TensorLeaf& leaf, const Piece& piece, Bytes& elements) {
  const std::size_t width = size_of(leaf.dtype);
  elements.resize(static_cast<std::size_t>(piece.box.elements()) * width);
  if (elements.empty()) return;
  copy_strided({leaf.data + static_cast<std::size_t>(piece.local) * width, piece.strides},
               {elements.data(), contiguous_strides(piece.box.extent)}, piece.box.extent, width);
}

void pack_elements(const GlobalTensor& tensor, const Box& box, Bytes& elements) {
  const std::size_t width = size_of(tensor.dtype);
  elements.resize(static_cast<std::size_t>(box.elements()) * width);
  if (elements.empty()) return;
  const Dims strides = contiguous_strides(tensor.shape);
  const auto start = static_cast<std::size_t>(linear_index(box.offset, tensor.shape)) * width;
  copy_strided({tensor.data.data() + start, strides},
               {elements.data(), contiguous_strides(box.extent)}, box.extent, width);
}

}  // namespace reprise
