#pragma once
// Assembles the state of a whole job from the ranks' pieces. For judging small jobs.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/state/state_dict.hpp"
#include "properties/ruling.hpp"

namespace reprise {

/// A rank that held a box; the first of several holders counts as its owner.
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
  std::string key;  ///< key with coordinate and grid
  Value value;
};

struct GlobalState {
  std::vector<GlobalTensor> tensors;  ///< sorted by key
  std::vector<GlobalObject> objects;  ///< sorted by key
  Value common;

  const GlobalTensor* tensor(std::string_view key) const;
  const GlobalObject* object(std::string_view key) const;
};

/// State of one rank. Borrowed; the leaves' data is host memory.
struct RankState {
  GlobalRank rank;
  const StateDict* state = nullptr;
};

/// Assembles the states of at least one rank. Reports REPLICA_MISMATCH if two ranks hold different
/// bits of one element or different values of one object, and COVERAGE_GAP, SHAPE_DRIFT,
/// DTYPE_DRIFT, COMMON_STATE_DIVERGES.
GlobalState assemble(std::span<const RankState> ranks, Rulings& rulings);

/// Copies the elements of the box out of a tensor, row-major.
Bytes elements_of(const GlobalTensor& tensor, const Box& box);

}  // namespace reprise
