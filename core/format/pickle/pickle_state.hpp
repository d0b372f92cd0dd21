#pragma once
// Finds the tensors and the other values in the pickle of a file of torch.save, such as the nested
// dicts of model, optimizer and schedule, and names each by its keys.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/format/pickle/pickle_reader.hpp"
#include "core/geometry/mesh_sharding.hpp"
#include "reprise/inspect.hpp"
#include "reprise/state.hpp"

namespace reprise {

/// What the pickle holds, in its order. Names are those of DCP's flatten_state_dict: the keys of
/// dicts and the positions in lists, joined by '.'. A list that has neither dicts nor tensors is
/// one value. Beyond that, a tuple with tensors is taken apart like a list; a file that is one
/// tensor has the name "tensor", and one other value "value".
struct PickledState {
  struct Tensor {
    std::string key;
    KeyPath path;
    TensorDescription tensor;
    std::optional<ShardPlace> shard = {};       ///< if it is one rank's part of a DTensor
    std::optional<std::int64_t> saved_by = {};  ///< the rank, if the DTensor says it
  };
  struct Object {
    std::string key;
    KeyPath path;
    Bytes pickle;  ///< the value alone, as encode_value() writes it
    /// True for what flatten_state_dict drops: an empty dict, and the attributes of an OrderedDict,
    /// such as the `_metadata` of a module's state_dict().
    bool dropped_by_dcp = false;
  };
  std::vector<Tensor> tensors;
  std::vector<Object> objects;
  /// Values that can't be read or named, each with its key. Their codes tell damage (such as a view
  /// that exceeds its storage) from what is not supported here.
  Findings findings;
};

/// Reads the pickle of a file of torch.save. Does not look at storages. Throws the same errors as
/// decode_value for the pickle as a whole, and LIMIT if names would be far longer than the pickle.
/// If `item` is given, all names begin with it: "model" and {"w": ...} make "model.w".
PickledState decode_state(ByteSpan pickle, const PickleSource& where, const std::string& item = "");

}  // namespace reprise
