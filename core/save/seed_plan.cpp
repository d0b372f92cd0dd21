#include "core/save/seed_plan.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "core/base/hash.hpp"
#include "core/plan/cover.hpp"

namespace reprise {
namespace {

std::uint64_t hash_of(const Dims& dims) {
  const std::span<const std::int64_t> numbers(dims.begin(), dims.size());
  return mix64(dims.size(), reprise::hash_of(std::as_bytes(numbers)));
}

std::uint64_t hash_of(const std::string& key, DType dtype, const Dims& shape) {
  return mix64(mix64(reprise::hash_of(key), static_cast<std::uint64_t>(dtype)), hash_of(shape));
}

std::uint64_t hash_of(std::uint64_t tensor, const Box& box) {
  return mix64(tensor, mix64(hash_of(box.offset), hash_of(box.extent)));
}

std::uint64_t hash_of_object(const std::string& name) { return mix64(reprise::hash_of(name), 1); }

/// Returns the rank that wrote each file of the catalogue; nothing if a file name contains no rank
/// or a rank that is not below `savers`.
std::optional<std::vector<GroupRank>> writers_of(const Catalog& catalog, std::int32_t savers) {
  constexpr std::string_view kBegin = "__";
  constexpr std::string_view kEnd = "_0.distcp";
  std::vector<GroupRank> writers;
  for (const std::string_view file : catalog.files) {
    if (!file.starts_with(kBegin) || !file.ends_with(kEnd)) return std::nullopt;
    if (file.size() <= kBegin.size() + kEnd.size()) return std::nullopt;
    const auto digits = file.substr(2, file.size() - kBegin.size() - kEnd.size());
    std::int32_t rank = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    const bool whole = error == std::errc{} && end == digits.data() + digits.size();
    if (!whole || rank < 0 || rank >= savers) return std::nullopt;
    writers.push_back({rank});
  }
  return writers;
}

/// Returns the boxes in order, with their writers; nothing if they do not tile the tensor.
std::optional<PlannedTensor> planned(const StoredTensor& stored,
                                     const std::vector<GroupRank>& writers) {
  if (!stored.original_shape.empty()) return std::nullopt;
  std::vector<std::size_t> order(stored.chunks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&stored](std::size_t a, std::size_t b) {
    return stored.chunks[a].box < stored.chunks[b].box;
  });
  PlannedTensor tensor{stored.key, stored.dtype, stored.shape, {}, {}};
  std::vector<Box> boxes;
  for (const std::size_t c : order) {
    const StoredChunk& chunk = stored.chunks[c];
    if (chunk.file == kNoFile || chunk.box.empty()) return std::nullopt;
    boxes.push_back(chunk.box);
    tensor.owners.push_back(writers[chunk.file]);
  }
  if (prove_cover(stored.shape, boxes)) return std::nullopt;
  tensor.boxes = std::make_shared<const std::vector<Box>>(std::move(boxes));
  return tensor;
}

}  // namespace

std::optional<GlobalPlan> plan_of(const Catalog& catalog, std::int32_t savers) {
  const auto writers = writers_of(catalog, savers);
  if (!writers) return std::nullopt;
  GlobalPlan plan;
  plan.bytes.assign(static_cast<std::size_t>(savers), 0);
  for (const auto& stored : catalog.tensors) {
    auto tensor = planned(stored, *writers);
    if (!tensor) return std::nullopt;
    for (std::size_t b = 0; b < tensor->owners.size(); ++b) {
      plan.bytes[static_cast<std::size_t>(tensor->owners[b].value)] +=
          static_cast<std::uint64_t>((*tensor->boxes)[b].elements()) * size_of(tensor->dtype);
    }
    plan.tensors.push_back(std::move(*tensor));
  }
  for (const auto& stored : catalog.objects) {
    if (stored.file == kNoFile) return std::nullopt;
    plan.objects.push_back({stored.key, (*writers)[stored.file]});
  }
  return plan;
}

std::uint64_t main_copies(const GlobalPlan& plan) {
  std::uint64_t sum = 0;
  for (const auto& tensor : plan.tensors) {
    const std::uint64_t hash = hash_of(tensor.key, tensor.dtype, tensor.shape);
    for (const Box& box : *tensor.boxes) sum += hash_of(hash, box);
  }
  for (const auto& object : plan.objects) sum += hash_of_object(object.key);
  return sum;
}

std::uint64_t main_copies(const StateDict& state) {
  std::uint64_t sum = 0;
  for (const auto& leaf : state.tensors) {
    if (leaf.replica != 0) continue;
    const std::uint64_t hash = hash_of(leaf.key, leaf.dtype, leaf.shape);
    for (const Piece& piece : leaf.pieces) {
      if (!piece.box.empty()) sum += hash_of(hash, piece.box);
    }
  }
  for (const auto& leaf : state.objects) {
    if (leaf.replica != 0) continue;
    sum += hash_of_object(stored_key(leaf));
  }
  return sum;
}

}  // namespace reprise
