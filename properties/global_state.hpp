#pragma once
// The state of a whole job in one place: what the ranks' pieces add up to. For judging small jobs.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/state/state_dict.hpp"
#include "properties/ruling.hpp"

namespace reprise {

/// Who held a box; the first of several holders counts as its owner.
struct Holder {
  Box box;
  GlobalRank rank;
};

struct GlobalTensor {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;
  Bytes data;  ///< row-major
  std::vector<Holder> holders;
};

struct GlobalObject {
  std::string key;  ///< with coordinate and grid
  Value value;
};

struct GlobalState {
  std::vector<GlobalTensor> tensors;  ///< sorted by key
  std::vector<GlobalObject> objects;  ///< sorted by key
  Value common;

  const GlobalTensor* tensor(std::string_view key) const;
  const GlobalObject* object(std::string_view key) const;
};

/// What one rank holds. Borrowed; the leaves' data is host memory.
struct RankState {
  GlobalRank rank;
  const StateDict* state = nullptr;
};

/// Puts the ranks' states together; at least one. Rulings: REPLICA_MISMATCH where two ranks hold
/// different bits of one element or different values of one object, COVERAGE_GAP, SHAPE_DRIFT,
/// DTYPE_DRIFT, COMMON_STATE_DIVERGES.
GlobalState assemble(std::span<const RankState> ranks, Rulings& rulings);

/// Copies the box's elements, row-major, out of a tensor.
Bytes elements_of(const GlobalTensor& tensor, const Box& box);

}  // namespace reprise
