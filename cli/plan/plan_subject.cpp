#include "cli/plan/plan_subject.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "core/base/print.hpp"
#include "sim/job/optimizer/family.hpp"
#include "sim/job/optimizer/slots.hpp"

namespace reprise::cli {
namespace {

constexpr DType kWeight = DType::kBFloat16;
constexpr DType kSlot = DType::kFloat32;

std::string slot_key(sim::Slot slot, const std::string& key) {
  return sim::slot_key(sim::Sharding::kFullyReshardable, slot, key);
}

/// Computes which tensors the ranks of one pipeline stage offer to save.
class Stage {
 public:
  /// `rank` may be any of the ranks that share this object, because they hold the same tensors.
  Stage(const sim::ModelSpec& model, const sim::Layout& layout, GlobalRank rank) {
    PlacedOffers offers;
    for (const auto kind : sim::kinds_of(model)) {
      families_.push_back(sim::family_of(kind, model, layout, rank, ceil_chunk));
      for (const auto& parameter : families_.back().parameters) {
        if (parameter.spec.fused.components > 1) continue;
        const sim::ParameterSpec& spec = parameter.spec;
        add(offers, parameter.mesh, spec.placement, {{spec.key, kWeight, spec.shape}});
        const Placement shared = shared_by(families_.back(), spec);
        for (const sim::Slot slot : sim::kSlots) {
          add(offers, parameter.mesh, shared, {{slot_key(slot, spec.key), kSlot, spec.shape}});
        }
      }
    }
    sort_by_key(offers.tensors);
    placed_ = std::make_shared<const PlacedOffers>(std::move(offers));
  }

  LocalPlan offers_of(GlobalRank rank) const {
    std::vector<TensorOffer> given;
    for (const sim::Family& family : families_) {
      for (const auto& parameter : family.parameters) {
        if (parameter.spec.fused.components > 1) add_fused(family, parameter, rank, given);
      }
    }
    sort_by_key(given);
    LocalPlan plan{.placed = placed_};
    plan.given = GivenOffers(given);
    return plan;
  }

 private:
  static Placement shared_by(const sim::Family& family, const sim::ParameterSpec& spec) {
    return sim::shared_placement(spec.placement, spec.shape, family.sharing, {});
  }

  template <class Offer>
  static void sort_by_key(std::vector<Offer>& offers) {
    std::sort(offers.begin(), offers.end(),
              [](const Offer& a, const Offer& b) { return a.form.key < b.form.key; });
  }

  static void add(PlacedOffers& offers, const std::shared_ptr<const Mesh>& mesh,
                  const Placement& placement, PlacedOffer offer) {
    auto& known = offers.placements;
    const auto found = std::find_if(known.begin(), known.end(), [&](const Placed& placed) {
      return placed.mesh == mesh && placed.placement == placement;
    });
    offer.placed = static_cast<std::uint32_t>(found - known.begin());
    if (found == known.end()) known.push_back({mesh, placement});
    offers.tensors.push_back(std::move(offer));
  }

  /// Adds the offers of a fused tensor. Its components are sharded separately, so one box of the
  /// local tensor becomes several boxes of the whole tensor, at most one per component.
  static void add_fused(const sim::Family& family, const sim::LocalParameter& parameter,
                        GlobalRank rank, std::vector<TensorOffer>& offers) {
    const sim::ParameterSpec& spec = parameter.spec;
    const GroupRank member = *parameter.mesh->members().rank_of(rank);
    const auto tensor =
        sim::local_tensor(spec, spec.placement, *parameter.mesh, member, ceil_chunk);
    const auto offer = [&](std::string key, DType dtype, const Box& local,
                           const Placement& placement) {
      TensorOffer made{{std::move(key), dtype, spec.shape}, {}, 0, {}};
      made.replica = placement.replica(*parameter.mesh, member);
      for (const Piece& piece : sim::pieces_packed(tensor, {&local, 1})) {
        made.boxes.push_back(piece.box);
      }
      offers.push_back(std::move(made));
    };
    offer(spec.key, kWeight, tensor.whole(), spec.placement);
    const Placement cut(sim::share_splits(tensor.shape, sim::ShareRule{}.dim, family.sharing));
    const Box share = cut.box(tensor.shape, family.sharing, sharing_rank(family, rank));
    for (const sim::Slot slot : sim::kSlots) {
      offer(slot_key(slot, spec.key), kSlot, share, shared_by(family, spec));
    }
  }

  /// Returns the position of `rank` among the ranks that share its optimizer.
  static GroupRank sharing_rank(const sim::Family& family, GlobalRank rank) {
    const GroupRank member = *family.mesh->members().rank_of(rank);
    std::vector<std::int32_t> coordinates;
    for (const Axis& axis : family.sharing.axes()) {
      coordinates.push_back(family.mesh->coordinate(member, axis.name));
    }
    return family.sharing.member_at(coordinates);
  }

  std::vector<sim::Family> families_;
  std::shared_ptr<const PlacedOffers> placed_;
};

/// Counts the pipeline stages with at least one parameter for which `wanted` returns true.
template <class Wanted>
std::int64_t stages_with(const sim::ModelSpec& model, const sim::Layout& layout, Wanted wanted) {
  std::set<std::int32_t> stages;
  for (const auto& parameter : model.parameters) {
    if (!wanted(parameter)) continue;
    for (const auto stage : sim::stages_of(parameter, model, layout)) stages.insert(stage);
  }
  return static_cast<std::int64_t>(stages.size());
}

/// Divides the model into one part per pipeline stage, so that a stage need not search the whole
/// model.
std::vector<sim::ModelSpec> by_stage(const sim::ModelSpec& model, const sim::Layout& layout) {
  sim::ModelSpec bare = model;
  bare.parameters.clear();
  std::vector<sim::ModelSpec> parts(static_cast<std::size_t>(layout.pp), bare);
  for (const auto& parameter : model.parameters) {
    for (const auto stage : sim::stages_of(parameter, model, layout)) {
      parts[static_cast<std::size_t>(stage)].parameters.push_back(parameter);
    }
  }
  return parts;
}

std::string idle_note(std::int64_t ranks, const std::string& lack, std::int64_t things,
                      const std::string& what, std::int64_t parts, const std::string& axis) {
  return with_commas(static_cast<std::uint64_t>(ranks)) +
         (ranks == 1 ? " rank holds" : " ranks hold") + " no " + lack + ": " +
         std::to_string(things) + " " + what + " over " + axis + " " + std::to_string(parts);
}

}  // namespace

std::vector<std::string> idle_notes(const sim::ModelSpec& model, const sim::Layout& layout) {
  std::vector<std::string> notes;
  const std::int64_t per_stage = layout.world_size() / layout.pp;
  const auto in_layer = [](const sim::ParameterSpec& parameter) {
    return std::any_of(parameter.places.begin(), parameter.places.end(),
                       [](const sim::Place& place) { return place.at == sim::Place::At::kLayer; });
  };
  const std::int64_t idle_stages = layout.pp - stages_with(model, layout, in_layer);
  if (idle_stages > 0) {
    notes.push_back(idle_note(idle_stages * per_stage, "decoder layer", model.layers, "layers",
                              layout.pp, "pp"));
  }
  const auto of_expert = [](const sim::ParameterSpec& parameter) {
    return parameter.mesh == sim::MeshKind::kExpert;
  };
  const auto& parameters = model.parameters;
  const auto stacked = std::find_if(parameters.begin(), parameters.end(), of_expert);
  if (stacked == parameters.end()) return notes;
  const std::int64_t experts = stacked->expert ? stacked->expert->of : stacked->shape[0];
  // The number of parts that get no expert when the experts are divided among `ep` parts.
  std::int64_t idle_parts = 0;
  for (std::int32_t part = 0; part < layout.ep; ++part) {
    if (ceil_chunk(experts, layout.ep, part).length() == 0) ++idle_parts;
  }
  if (idle_parts > 0) {
    notes.push_back(
        idle_note(idle_parts * (per_stage / layout.ep) * stages_with(model, layout, of_expert),
                  "expert", experts, "experts", layout.ep, "ep"));
  }
  return notes;
}

std::uint64_t shares_of(const sim::ModelSpec& model, const sim::Layout& layout) {
  sim::check_fits(model, layout);
  const auto per_stage = static_cast<std::uint64_t>(layout.world_size() / layout.pp);
  std::uint64_t shares = 0;
  for (const auto& parameter : model.parameters) {
    const std::uint64_t holders = per_stage / (parameter.expert ? layout.ep : 1);
    shares += sim::stages_of(parameter, model, layout).size() * holders;
  }
  return shares * (1 + std::size(sim::kSlots));
}

std::vector<LocalPlan> offers_of(const sim::ModelSpec& model, const sim::Layout& layout) {
  sim::check_fits(model, layout);
  const Mesh mesh = sim::dense_mesh(layout);
  const std::vector<sim::ModelSpec> parts = by_stage(model, layout);
  const bool own_tensors =
      std::any_of(model.parameters.begin(), model.parameters.end(),
                  [](const sim::ParameterSpec& parameter) { return parameter.expert.has_value(); });
  const Mesh experts = sim::expert_mesh(layout);
  // A key is a pipeline stage and an expert rank. Ranks with the same key hold the same tensors. If
  // no expert has tensors of its own, all ranks have expert rank 0 here.
  std::map<std::pair<std::size_t, std::int32_t>, std::unique_ptr<Stage>> stages;
  std::vector<LocalPlan> plans;
  plans.reserve(static_cast<std::size_t>(layout.world_size()));
  for (std::int32_t r = 0; r < layout.world_size(); ++r) {
    const auto s = static_cast<std::size_t>(mesh.coordinate({r}, "pp"));
    const GroupRank expert = *experts.members().rank_of(GlobalRank{r});
    auto& stage = stages[{s, own_tensors ? experts.coordinate(expert, "ep") : 0}];
    if (!stage) stage = std::make_unique<Stage>(parts[s], layout, GlobalRank{r});
    plans.push_back(stage->offers_of({r}));
  }
  return plans;
}

std::vector<StateDict> states_of(const Catalog& catalog, std::int32_t ranks) {
  std::vector<StateDict> states(static_cast<std::size_t>(ranks));
  for (const auto& tensor : catalog.tensors) {
    const Dims& shape = logical_shape(tensor);
    for (std::int32_t r = 0; r < ranks; ++r) {
      Box box = Box::whole(shape);
      if (!shape.empty()) {
        const Interval part = ceil_chunk(shape[0], ranks, r);
        box.offset[0] = part.begin;
        box.extent[0] = part.length();
      }
      TensorLeaf leaf{.key = tensor.key, .dtype = tensor.dtype, .shape = shape};
      leaf.folded = tensor.folded;
      if (!box.empty()) leaf.pieces.push_back(contiguous_piece(box));
      states[static_cast<std::size_t>(r)].tensors.push_back(std::move(leaf));
    }
  }
  return states;
}

}  // namespace reprise::cli
