#include "scenarios/cli/plan_subject.hpp"

#include "sim/job/family.hpp"

namespace reprise::cli {
namespace {

/// A leaf without bytes, as a fully_reshardable job describes it.
TensorLeaf leaf(std::string key, DType dtype, const sim::LocalParameter& parameter,
                std::vector<Piece> pieces, Placement placement) {
  TensorLeaf leaf{.key = std::move(key), .dtype = dtype, .shape = parameter.spec.shape};
  leaf.pieces = std::move(pieces);
  leaf.replica = placement.replica(*parameter.mesh, parameter.member);
  if (parameter.spec.fused.components == 1) {
    leaf.placed = Placed{parameter.mesh, std::move(placement)};
  }
  return leaf;
}

void add_family(const sim::Family& family, StateDict& state) {
  std::vector<sim::LocalTensor> tensors;
  for (const auto& parameter : family.parameters) tensors.push_back(parameter.tensor);
  const sim::ShareTable table = sim::share_out(tensors, family.sharing, family.instances, {});
  const auto own = sim::sharing_group(family).rank_of(family.mesh->members().member(family.member));
  for (std::size_t p = 0; p < family.parameters.size(); ++p) {
    const auto& parameter = family.parameters[p];
    const Box whole = parameter.tensor.whole();
    const auto& boxes = table.shares[p][static_cast<std::size_t>(own->value)].boxes;
    state.tensors.push_back(leaf(parameter.spec.key, DType::kBFloat16, parameter,
                                 pieces_packed(parameter.tensor, {&whole, 1}),
                                 parameter.spec.placement));
    for (const sim::Slot slot : sim::kSlots) {
      state.tensors.push_back(
          leaf(sim::slot_key(sim::Sharding::kFullyReshardable, slot, parameter.spec.key),
               DType::kFloat32, parameter, pieces_packed(parameter.tensor, boxes),
               sim::shared_placement(parameter.spec.placement, parameter.spec.shape, family.sharing,
                                     {})));
    }
  }
}

}  // namespace

std::vector<StateDict> states_of(const sim::ModelSpec& model, const sim::Layout& layout) {
  std::vector<StateDict> states(static_cast<std::size_t>(layout.world_size()));
  for (std::int32_t r = 0; r < layout.world_size(); ++r) {
    for (const auto kind : sim::kinds_of(model)) {
      add_family(sim::family_of(kind, model, layout, GlobalRank{r}, ceil_chunk),
                 states[static_cast<std::size_t>(r)]);
    }
  }
  return states;
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
      if (!box.empty()) leaf.pieces.push_back(contiguous_piece(box));
      states[static_cast<std::size_t>(r)].tensors.push_back(std::move(leaf));
    }
  }
  return states;
}

}  // namespace reprise::cli
