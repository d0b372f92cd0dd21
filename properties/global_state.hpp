#pragma once
// Assembles the state of a whole job from the ranks' pieces. Meant for judging small jobs.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/state/state_dict.hpp"
#include "properties/finding.hpp"

namespace reprise {

/// A box and the rank that owns it. If several ranks hold the box, the first of them owns it.
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
  std::string key;  ///< includes coordinate and grid
  Value value;
};

struct GlobalState {
  std::vector<GlobalTensor> tensors;  ///< sorted by key
  std::vector<GlobalObject> objects;  ///< sorted by key
  Value common;

  const GlobalTensor* tensor(std::string_view key) const;
  const GlobalObject* object(std::string_view key) const;
};

/// Borrows the state of one rank. The data of the state's leaves is in host memory.
struct RankState {
  GlobalRank rank;
  const StateDict* state = nullptr;
};

/// Assembles the states of one or more ranks. Reports REPLICA_MISMATCH if two ranks hold different
/// bits of one element or different values of one object. Also reports COVERAGE_GAP, SHAPE_DRIFT,
/// DTYPE_DRIFT and COMMON_STATE_DIVERGES.
GlobalState assemble(std::span<const RankState> ranks, judged::Findings& findings);

/// Returns those elements of the tensor that are in the box, row-major.
Bytes elements_of(const GlobalTensor& tensor, const Box& box);
/// The same, for a piece that a rank holds in host memory.
Bytes elements_of(const TensorLeaf& leaf, const Piece& piece);
/// Does the same with memory that the caller keeps: `elements` then holds these elements and no
/// others.
void pack_elements(const GlobalTensor& tensor, const Box& box, Bytes& elements);
void pack_elements(const TensorLeaf& leaf, const Piece& piece, Bytes& elements);

}  // namespace reprise
