#pragma once
// Reads `metadata.pkl`, in which torch_checkpointing 0.1 describes a checkpoint: a plain dict.
//
//   version    "2.0"
//   world_size 4
//   metadata   {item: {nested_path_to_metadata: {'["w"]': [{ranks: (0, 1), sharding_metadata: S}]},
//                      rank_to_layout_info: {0: None or {file_path, serialization_format:
//                      {type}}}}}
//   S          {type: DTensorShardingMetadata, data: {global_shape, mesh_spec: {mesh_shape,
//              mesh_data}, placements: [{type: Shard, dim}, ...]}}, or
//              {type: default_tensor_v1, data: {global_shape, global_offsets, local_offsets,
//              local_sizes}}
//
// Version "1.0" has the paths with the item in front, '["model","w"]', and
// rank_to_layout_info_mappings {rank: {item: layout}} beside them.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/format/pickle/pickle_reader.hpp"
#include "core/geometry/mesh_sharding.hpp"

namespace reprise {

/// A part of a tensor, and where it begins in what the rank holds.
struct LocalShard {
  ShardPlace place;
  Dims local_offset;

  friend bool operator==(const LocalShard&, const LocalShard&) = default;
};

struct TorchCheckpointing {
  /// What some ranks know of a tensor.
  struct Group {
    std::set<std::int32_t> ranks;
    MeshSharding sharding;                                               ///< of a DTensor
    std::map<std::int32_t, std::vector<std::int64_t>> coordinates = {};  ///< by rank of its mesh
    std::vector<LocalShard> shards = {};                                 ///< if it is no DTensor
  };
  struct Item {
    /// Files by rank, where the item is not in `<item>_<rank>.pt`.
    std::map<std::int32_t, std::string> files;
    /// By the name of a tensor within the item, whose keys are joined by '.'.
    std::map<std::string, std::vector<Group>> tensors;
  };
  std::string version;
  std::int32_t world_size = 0;
  std::map<std::string, Item> items;

  std::string file_of(const std::string& item, std::int32_t rank) const;
  /// Returns the parts that a rank holds; empty if the metadata knows of none.
  std::vector<LocalShard> shards_of(const std::string& item, const std::string& name,
                                    std::int32_t rank) const;
};

/// Throws TORN_FILE, LIMIT, PATH_ESCAPE or UNSUPPORTED (a later version, items that are not files
/// of torch.save).
TorchCheckpointing read_torch_checkpointing(ByteSpan pickle, const PickleSource& where);

}  // namespace reprise
