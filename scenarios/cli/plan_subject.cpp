#include "scenarios/cli/plan_subject.hpp"

#include <memory>

namespace reprise::cli {
namespace {

TensorLeaf leaf(std::string key, DType dtype, const Dims& shape, Placed placed, GroupRank member) {
  TensorLeaf leaf{.key = std::move(key), .dtype = dtype, .shape = shape};
  const Box box = placed.placement.box(shape, *placed.mesh, member);
  if (!box.empty()) leaf.pieces.push_back(contiguous_piece(box));
  leaf.replica = placed.placement.replica(*placed.mesh, member);
  leaf.placed = std::move(placed);
  return leaf;
}

}  // namespace

std::vector<StateDict> states_of(const sim::ModelSpec& model, const sim::Layout& layout) {
  const auto mesh = std::make_shared<const Mesh>(sim::dense_mesh(layout));
  std::vector<StateDict> states(static_cast<std::size_t>(layout.world_size()));
  for (std::int32_t r = 0; r < layout.world_size(); ++r) {
    auto& tensors = states[static_cast<std::size_t>(r)].tensors;
    for (const auto& parameter : model.parameters) {
      tensors.push_back(leaf(parameter.key, DType::kBFloat16, parameter.shape,
                             {mesh, parameter.placement}, GroupRank{r}));
      for (const auto* prefix : {"fp32_param", "exp_avg", "exp_avg_sq"}) {
        tensors.push_back(leaf("optimizer.state." + std::string(prefix) + "." + parameter.key,
                               DType::kFloat32, parameter.shape,
                               {mesh, sim::optimizer_placement(parameter)}, GroupRank{r}));
      }
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
