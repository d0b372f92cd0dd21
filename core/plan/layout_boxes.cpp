#include "core/plan/layout_boxes.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "core/geometry/placement.hpp"
#include "core/megatron/expert_key.hpp"
#include "core/megatron/module_key.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

using Cut = ParallelKey::Cut;
using Stage = ParallelKey::Stage;

/// Megatron's distributed optimizer fills each bucket up to a multiple of this many elements and of
/// the ranks that share it.
constexpr std::int64_t kBucketUnit = 128;

/// Most layers, or experts, in one tensor: each becomes a box.
constexpr std::int64_t kStackedMax = 65536;

Box with_interval(Box box, std::size_t dim, Interval interval) {
  box.offset[dim] = interval.begin;
  box.extent[dim] = interval.length();
  return box;
}

/// Replaces each box by its part number `index` of `parts` along the dimension.
void take_part(std::vector<Box>& boxes, std::size_t dim, std::int32_t parts, std::int32_t index) {
  for (Box& box : boxes) {
    Interval part = ceil_chunk(box.extent[dim], parts, index);
    part.begin += box.offset[dim];
    part.end += box.offset[dim];
    box = with_interval(box, dim, part);
  }
}

/// Replaces each box by its slices of length 1 along the dimension, those that are wanted.
template <class Wanted>
void take_slices(std::vector<Box>& boxes, std::size_t dim, const Wanted& wanted) {
  std::vector<Box> slices;
  for (const Box& box : boxes) {
    for (std::int64_t at = box.offset[dim]; at < box.offset[dim] + box.extent[dim]; ++at) {
      if (wanted(at)) slices.push_back(with_interval(box, dim, {at, at + 1}));
    }
  }
  boxes = std::move(slices);
}

bool is_bucket(const StoredTensor& tensor, std::int64_t& group) {
  const auto key = parse_module_key(tensor.key);
  if (!key || key->kind != ModuleKey::Kind::kBucket) return false;
  group = key->group;
  return true;
}

/// Returns the key of the layer that takes what the layer `linear_fc1` gives; empty if the key is
/// not of that layer.
std::string next_layer_of(const std::string& key) {
  constexpr std::string_view kFirst = "linear_fc1";
  const auto at = key.find(kFirst);
  if (at == std::string::npos) return "";
  std::string next = key;
  next.replace(at, kFirst.size(), "linear_fc2");
  constexpr std::string_view kBias = ".bias";
  const auto bias = next.find(kBias, at);
  if (bias != std::string::npos) next.replace(bias, kBias.size(), ".weight");
  return next;
}

}  // namespace

LayoutBoxes::LayoutBoxes(const Catalog& catalog, LayoutParts parts, const SavedBy& saved_by)
    : catalog_(catalog), parts_(std::move(parts)), saved_by_(saved_by) {
  bool output = false;
  std::int64_t experts = 0;
  for (const StoredTensor& tensor : catalog.tensors) {
    std::int64_t group = 0;
    if (is_bucket(tensor, group)) groups_ = std::max(groups_, group + 1);
    const ParallelKey key = parse_parallel_key(name_of(tensor));
    output |= name_of(tensor).find("output_layer.weight") != std::string_view::npos;
    if (key.stage == Stage::kLayer && key.layer) layers_ = std::max(layers_, *key.layer + 1);
    experts_ |= key.expert;
    if (key.expert_number) experts = std::max(experts, *key.expert_number + 1);
  }
  tied_ = saved_by_.megatron && !output;
  cuts_.reserve(catalog.tensors.size());
  for (const StoredTensor& tensor : catalog.tensors) {
    cuts_.push_back(cut_of(tensor));
    if (cuts_.back().key.expert_number) cuts_.back().experts = experts;
    check(tensor, cuts_.back());
  }
}

LayoutBoxes::TensorCut LayoutBoxes::cut_of(const StoredTensor& tensor) const {
  TensorCut cut{.key = parse_parallel_key(name_of(tensor))};
  const Dims& shape = logical_shape(tensor);
  std::int64_t group = 0;
  if (is_bucket(tensor, group)) {
    cut.group = group;
    cut.unfit = parts_.tp != saved_by_.tp || parts_.pp != saved_by_.pp ||
                groups_ != std::int64_t{parts_.tp} * parts_.pp;
    return cut;
  }
  ParallelKey& key = cut.key;
  key.layers_stacked &= saved_by_.megatron;
  if (key.stage == Stage::kLayer && !key.layer && !key.layers_stacked) key.stage = Stage::kEvery;
  if (key.lead() > shape.size()) {  // such as a step that each optimizer counts
    key = {.cut = Cut::kWhole};
    return cut;
  }
  for (std::size_t d = 0; d < key.lead(); ++d) {
    if (shape[d] <= kStackedMax) continue;
    throw Error(Code::kLimit,
                std::to_string(shape[d]) + " layers or experts in one tensor are more than the " +
                    std::to_string(kStackedMax) + " that are planned for",
                {.key = tensor.key});
  }
  cut.layers = key.layers_stacked ? shape[0] : layers_;
  if (key.experts_stacked) cut.experts = shape[key.lead() - 1];
  find_dim(tensor, cut);
  return cut;
}

void LayoutBoxes::find_dim(const StoredTensor& tensor, TensorCut& cut) const {
  const Dims& shape = logical_shape(tensor);
  const std::size_t lead = cut.key.lead();
  if (shape.empty()) cut.key.cut = Cut::kWhole;
  if (cut.key.cut == Cut::kRows || cut.key.cut == Cut::kColumns) {
    const std::size_t dim = lead + (cut.key.cut == Cut::kRows ? 0 : 1);
    if (dim < shape.size()) {
      cut.dim = dim;
      cut.gated = saved_by_.megatron && cut.key.maybe_gated && is_gated(tensor, dim);
      return;
    }
    cut.key.cut = Cut::kUnknown;
  }
  if (cut.key.cut != Cut::kUnknown) return;
  cut.dim = dim_of_chunks(tensor, lead);
  if (cut.dim) cut.key.cut = *cut.dim == lead ? Cut::kRows : Cut::kColumns;
}

/// Returns the only dimension in which the chunks are as many as the ranks of tensor parallelism of
/// the job that saved.
std::optional<std::size_t> LayoutBoxes::dim_of_chunks(const StoredTensor& tensor,
                                                      std::size_t lead) const {
  if (!saved_by_.megatron || saved_by_.tp < 2 || !tensor.original_shape.empty()) return {};
  std::optional<std::size_t> found;
  for (std::size_t d = lead; d < tensor.shape.size(); ++d) {
    std::set<std::int64_t> begins;
    for (const StoredChunk& chunk : tensor.chunks) begins.insert(chunk.box.offset[d]);
    if (begins.size() == 1) continue;
    if (found || std::cmp_not_equal(begins.size(), saved_by_.tp)) return {};
    found = d;
  }
  return found;
}

bool LayoutBoxes::is_gated(const StoredTensor& tensor, std::size_t dim) const {
  const std::string key(name_of(tensor));
  const StoredTensor* next = catalog_.tensor(next_layer_of(key));
  if (next == nullptr) return false;
  const Dims& shape = logical_shape(*next);
  return dim + 1 < shape.size() && logical_shape(tensor)[dim] == 2 * shape[dim + 1];
}

void LayoutBoxes::check(const StoredTensor& tensor, const TensorCut& cut) const {
  if (!saved_by_.megatron) return;
  const auto refuse = [&](const std::string& what, std::int64_t parts,
                          const std::string& of = " ranks") {
    throw Error(
        Code::kLayoutMismatch,
        "the layout does not fit the checkpoint: " + what + " over " + std::to_string(parts) + of,
        {.key = tensor.key});
  };
  if (cut.key.stage == Stage::kLayer && parts_.layer_parts != 0 &&
      cut.layers % parts_.layer_parts != 0) {
    refuse(std::to_string(cut.layers) + " layers", parts_.layer_parts, " stages");
  }
  if (cut.key.expert && cut.experts % parts_.ep != 0) {
    refuse(std::to_string(cut.experts) + " experts", parts_.ep);
  }
  // A vocabulary is padded for the tensor parallelism of each job.
  if (!cut.dim || cut.key.stage != Stage::kLayer) return;
  const std::int32_t parts = cut.key.expert ? parts_.etp : parts_.tp;
  const std::int64_t length = logical_shape(tensor)[*cut.dim] / (cut.gated ? 2 : 1);
  if (length % parts != 0) {
    refuse(std::to_string(length) + (cut.key.cut == Cut::kRows ? " rows" : " columns"), parts);
  }
}

bool LayoutBoxes::has(const TensorCut& cut, const LayoutPlace& place) const {
  const std::int32_t last = parts_.pp - 1;
  switch (cut.key.stage) {
    case Stage::kEvery:
      return true;
    case Stage::kFirst:
      return place.pp == 0 || (tied_ && place.pp == last && cut.key.cut == Cut::kRows);
    case Stage::kLast:
      return place.pp == last;
    case Stage::kLayer:
      return !cut.key.layer || parts_.stage_of(*cut.key.layer, cut.layers) == place.pp;
  }
  return true;
}

std::vector<Box> LayoutBoxes::slices(const TensorCut& cut, const Box& whole,
                                     const LayoutPlace& place) const {
  const ParallelKey& key = cut.key;
  std::vector<Box> boxes = {whole};
  if (cut.gated) {
    const std::int64_t half = whole.extent[*cut.dim] / 2;
    boxes = {with_interval(whole, *cut.dim, {0, half}),
             with_interval(whole, *cut.dim, {half, 2 * half})};
  }
  if (cut.dim) {
    take_part(boxes, *cut.dim, key.expert ? parts_.etp : parts_.tp,
              key.expert ? place.etp : place.tp);
  }
  if (key.layers_stacked) {
    take_slices(boxes, 0, [&](std::int64_t layer) {
      return key.stage != Stage::kLayer || parts_.stage_of(layer, cut.layers) == place.pp;
    });
  }
  if (key.experts_stacked) {
    const std::size_t dim = key.lead() - 1;
    take_part(boxes, dim, parts_.ep, place.ep);
    if (saved_by_.megatron) take_slices(boxes, dim, [](std::int64_t) { return true; });
  }
  if (!saved_by_.megatron && whole.ndim() > 0) {
    take_part(boxes, 0, key.expert ? parts_.expert_shards : parts_.shards,
              key.expert ? place.expert_shard : place.shard);
  }
  return boxes;
}

std::vector<Box> LayoutBoxes::of(std::uint32_t tensor, const LayoutPlace& place) const {
  const TensorCut& cut = cuts_[tensor];
  const Box whole = Box::whole(logical_shape(catalog_.tensors[tensor]));
  if (cut.unfit || whole.empty()) return {};
  if (cut.group) {
    if (*cut.group != place.tp + std::int64_t{parts_.tp} * place.pp) return {};
    const std::int64_t unit = std::lcm<std::int64_t>(parts_.shards, kBucketUnit);
    const std::int64_t length = whole.extent[0];
    const std::int64_t each = (length + unit - 1) / unit * unit / parts_.shards;
    const Interval part{std::min(each * place.shard, length),
                        std::min(each * (place.shard + 1), length)};
    if (part.length() == 0) return {};
    return {with_interval(whole, 0, part)};
  }
  if (!has(cut, place)) return {};
  if (cut.key.expert_number &&
      *cut.key.expert_number / std::max<std::int64_t>(1, cut.experts / parts_.ep) != place.ep) {
    return {};
  }
  std::vector<Box> boxes = slices(cut, whole, place);
  std::erase_if(boxes, [](const Box& box) { return box.empty(); });
  return boxes;
}

LayoutPlace LayoutBoxes::as_asked(LayoutPlace place) const {
  if (!experts_) place.ep = place.etp = place.expert_shard = 0;
  if (saved_by_.megatron) place.expert_shard = 0;
  if (saved_by_.megatron && groups_ == 0) place.shard = 0;
  return place;
}

std::vector<std::string> LayoutBoxes::keys_where(
    const std::function<bool(std::uint32_t)>& wanted) const {
  std::vector<std::string> keys;
  for (std::uint32_t t = 0; t < cuts_.size(); ++t) {
    if (wanted(t)) keys.push_back(catalog_.tensors[t].key);
  }
  return keys;
}

std::vector<std::string> LayoutBoxes::untold() const {
  return keys_where([this](std::uint32_t t) {
    const TensorCut& cut = cuts_[t];
    const std::int32_t parts = cut.key.expert ? parts_.etp : parts_.tp;
    return parts > 1 && !cut.group && cut.key.cut == Cut::kUnknown;
  });
}

std::vector<std::string> LayoutBoxes::unfit() const {
  return keys_where([this](std::uint32_t t) { return cuts_[t].unfit; });
}

std::vector<std::string> LayoutBoxes::flattened() const {
  return keys_where([this](std::uint32_t t) {
    return parts_.shards > 1 && !catalog_.tensors[t].original_shape.empty();
  });
}

}  // namespace reprise
