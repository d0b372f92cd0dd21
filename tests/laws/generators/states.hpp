#pragma once
// Generators of state dicts: tensors, and where the ranks of a mesh hold them.

#include "tests/fixtures/round_trip.hpp"
#include "tests/laws/generators/geometry.hpp"

namespace reprise::laws {

using testing_job::RankState;
using testing_job::TensorSpec;

/// Tensors and where they are.
struct PlacedState {
  MeshPtr mesh;
  std::vector<TensorSpec> tensors;

  std::int32_t ranks() const { return mesh->size(); }
  std::unique_ptr<RankState> of(GlobalRank rank) const {
    return std::make_unique<RankState>(tensors, mesh, rank);
  }

  friend std::ostream& operator<<(std::ostream& out, const PlacedState& state) {
    out << "on " << *state.mesh;
    for (const auto& tensor : state.tensors) {
      out << "; " << tensor.key << ' ' << tensor.dtype << ' ' << tensor.shape << " as "
          << tensor.placement;
    }
    return out;
  }
};

inline rc::Gen<DType> dtypes() {
  return rc::gen::element(DType::kFloat32, DType::kBFloat16, DType::kInt8, DType::kFloat64,
                          DType::kBool, DType::kComplex64);
}

/// Keys of which a sorted list differs from one in the order of the numbers.
inline std::string key_of(std::size_t number) { return "layer" + std::to_string(number + 8); }

inline rc::Gen<PlacedState> placed_states() {
  return rc::gen::exec([] {
    PlacedState state{.mesh = *meshes(), .tensors = {}};
    const auto count = static_cast<std::size_t>(any_from(1, 4));
    for (std::size_t i = 0; i < count; ++i) {
      const Dims shape = *shapes();
      state.tensors.push_back({key_of(i), *dtypes(), shape, *placements(state.mesh, shape.size())});
    }
    return state;
  });
}

/// The same tensors on another mesh, placed in other ways.
inline rc::Gen<PlacedState> elsewhere(const PlacedState& state) {
  return rc::gen::exec([tensors = state.tensors] {
    PlacedState other{.mesh = *meshes(), .tensors = tensors};
    for (auto& tensor : other.tensors) {
      tensor.placement = *placements(other.mesh, tensor.shape.size());
    }
    return other;
  });
}

}  // namespace reprise::laws
