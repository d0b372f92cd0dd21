#include "cli/arguments/layout_argument.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/print.hpp"
#include "core/megatron/layout_sizes.hpp"
#include "core/megatron/modules.hpp"

namespace reprise::cli {
namespace {

/// Upper limit on the number of tensors times the number of places; 100 million take a minute.
constexpr std::uint64_t kWishesMax = 100'000'000;

/// Returns the size that an argument states; nothing if it is absent or no size.
std::optional<std::int32_t> size_in(const Value& common, std::string_view argument) {
  const Value* args = common.find("args");
  const Value* size = args != nullptr ? args->find(argument) : nullptr;
  const auto* number = size != nullptr ? size->as<std::int64_t>() : nullptr;
  if (number == nullptr || *number < 1 || *number > kPlannedRanksMax) return std::nullopt;
  return static_cast<std::int32_t>(*number);
}

SavedBy saved_by(Checkpoint& checkpoint, const Value* common) {
  SavedBy found{.megatron = checkpoint.of_megatron()};
  if (common != nullptr) {
    found.tp = size_in(*common, "tensor_model_parallel_size").value_or(1);
    found.pp = size_in(*common, "pipeline_model_parallel_size").value_or(1);
  }
  return found;
}

LayoutPlace place_of(const Mesh& dense, const Mesh& experts, std::int32_t cp, GlobalRank rank) {
  const GroupRank member = *dense.members().rank_of(rank);
  const GroupRank expert = *experts.members().rank_of(rank);
  return {.tp = dense.coordinate(member, "tp"),
          .pp = dense.coordinate(member, "pp"),
          .ep = experts.coordinate(expert, "ep"),
          .etp = experts.coordinate(expert, "etp"),
          .shard = dense.coordinate(member, "cp") + cp * dense.coordinate(member, "dp_shard"),
          .expert_shard = experts.coordinate(expert, "edp_shard")};
}

std::string keys_text(const std::vector<std::string>& keys) { return join_first(keys, 3); }

}  // namespace

std::vector<LayoutPlace> LayoutOfCheckpoint::places_alone() const {
  std::vector<LayoutPlace> alone;
  for (const RanksAtPlace& at : places) alone.push_back(at.place);
  return alone;
}

std::vector<std::string> LayoutOfCheckpoint::notes() const {
  std::vector<std::string> notes;
  if (const auto keys = boxes->untold(); !keys.empty()) {
    notes.push_back("nothing says whether tensor parallelism cuts " +
                    counted(keys.size(), "tensor") +
                    ", taken as whole on each rank: " + keys_text(keys));
  }
  if (const auto keys = boxes->flattened(); !keys.empty()) {
    notes.push_back(
        "replicas share " + counted(keys.size(), "flattened tensor") +
        " in ranges that only the job knows, taken as whole on each: " + keys_text(keys));
  }
  if (const auto keys = boxes->unfit(); !keys.empty()) {
    notes.push_back(counted(keys.size(), "tensor") +
                    (keys.size() == 1 ? " is a bucket" : " are buckets") +
                    " of the distributed optimizer (dp_reshardable), which can be loaded only with "
                    "the tp and pp of the job that saved; not counted: " +
                    keys_text(keys));
  }
  return notes;
}

sim::Layout planned_layout(const std::string& text) {
  sim::Layout layout = sim::parse_layout(text);
  if (layout.world_size() > kPlannedRanksMax) {
    throw Error(Code::kUsage, "plans are made for up to " + with_commas(kPlannedRanksMax) +
                                  " ranks; " + text + " has " +
                                  with_commas(static_cast<std::uint64_t>(layout.world_size())));
  }
  return layout;
}

LayoutOfCheckpoint layout_of_checkpoint(const std::string& text, Checkpoint& checkpoint) {
  LayoutOfCheckpoint found;
  found.layout = planned_layout(text);
  const sim::Layout& layout = found.layout;
  const Catalog& catalog = checkpoint.catalog();
  const auto common = checkpoint.common();
  const Value* state = common && common->item.value ? &*common->item.value : nullptr;
  if (!modules_of(catalog, state).empty()) {
    throw Error(Code::kUsage,
                "the checkpoint has several modules, each with a layout of its own, and a layout "
                "can't say which of them it is for");
  }
  found.parts = parts_of(layout);
  found.saved_by = saved_by(checkpoint, state);
  found.boxes = std::make_unique<LayoutBoxes>(catalog, found.parts, found.saved_by);
  const Mesh dense = sim::dense_mesh(layout);
  const Mesh experts = sim::expert_mesh(layout);
  std::map<LayoutPlace, std::vector<std::int32_t>> ranks;
  for (std::int32_t r = 0; r < layout.world_size(); ++r) {
    ranks[found.boxes->as_asked(place_of(dense, experts, layout.cp, GlobalRank{r}))].push_back(r);
  }
  if (catalog.tensors.size() * ranks.size() > kWishesMax) {
    throw Error(Code::kLimit, with_commas(catalog.tensors.size()) + " tensors on " +
                                  with_commas(ranks.size()) +
                                  " ranks that differ are more than the " +
                                  with_commas(kWishesMax) + " that can be planned");
  }
  for (auto& [place, at] : ranks) found.places.push_back({place, std::move(at)});
  std::ranges::sort(found.places, {}, [](const RanksAtPlace& at) { return at.ranks.front(); });
  return found;
}

std::vector<std::uint64_t> LayoutOfCheckpoint::counts() const {
  std::vector<std::uint64_t> counts;
  for (const RanksAtPlace& at : places) counts.push_back(at.ranks.size());
  return counts;
}

LayoutParts parts_of(const sim::Layout& layout) {
  const std::int32_t copies = layout.expert_copies();
  return {.tp = layout.tp,
          .pp = layout.pp,
          .ep = layout.ep,
          .etp = layout.expert_tp(),
          .shards = layout.dp / layout.dp_replicate * layout.cp,
          .expert_shards = layout.expert_dp() / copies,
          .layer_parts = layout.stage_layers.empty() ? layout.pp * layout.vpp : 0,
          .stage_of = [layout](std::int64_t layer, std::int64_t layers) {
            return sim::stage_of(layer, layers, layout);
          }};
}

sim::Layout saving_layout(const Value& common) {
  sim::Layout layout;
  for (const LayoutSize& size : kLayoutSizes) {
    const auto found = size_in(common, size.argument);
    if (found) layout.set_size(size.name, *found);
  }
  return layout;
}

std::string ranks_text(const std::vector<std::int32_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[i]);
    if (end - i > 1) text += (end - i == 2 ? ", " : "-") + std::to_string(ranks[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace reprise::cli
