#pragma once
// Reads torch's DTensor in a pickle's graph. Each rank pickles its own part and what it knows of
// the whole:
//
//   _rebuild_from_type_v2(_rebuild_wrapper_subclass, DTensor, (...), state)
//   state        (None, {'_local_tensor': tensor, '_spec': DTensorSpec}), or the dict alone
//   DTensorSpec  {'mesh': DeviceMesh, 'placements': (Shard{'dim': 0}, Replicate{}),
//                 'tensor_meta': TensorMeta(shape, stride, dtype)}
//   DeviceMesh   {'_coordinate_on_dim': [0, 1], 'mesh': tensor} in torch 2.4 to 2.8; later, a
//                '_layout' of shape or axes instead of the tensor

#include <cstdint>
#include <optional>

#include "core/format/pickle/pickle_machine.hpp"
#include "core/geometry/mesh_sharding.hpp"

namespace reprise::pickle {

struct DTensorPart {
  NodeId local = kNoNode;  ///< the tensor that the rank holds
  ShardPlace place;
  /// The rank that saved it, as its mesh says; nothing if it does not.
  std::optional<std::int64_t> saved_by = {};
};

/// Returns nothing if the node is no DTensor. Throws TORN_FILE and UNSUPPORTED if it is one that
/// can't be read, such as a partial sum.
std::optional<DTensorPart> dtensor_part(const Graph& graph, NodeId node, const PickleSource& where);

}  // namespace reprise::pickle
