#pragma once
// Opens directories in which each rank wrote its own part with torch.save, and puts the parts
// together where they say where they belong.
//
//   model_world_size_4_rank_0.pt   verl and others with FSDP: a DTensor says where its part belongs
//   model_0.pt, metadata.pkl       torch_checkpointing: the metadata says it, too
//   zero/<param>/fp32.pt           DeepSpeed's universal form: whole tensors, by no rank
//
// Items of a rank are named <item>.<key>, such as model.layers.0.weight. What several ranks have as
// a whole, such as a learning rate, is each rank's own value, <key>@rank<n>, as where torch writes
// metadata of each rank (core/format/rank_tables.hpp).

#include <string>

#include "core/checkpoint/safetensors_files.hpp"

namespace reprise {

/// True if the directory itself has files named <item>_world_size_<n>_rank_<r>.pt. False if it is
/// missing.
bool holds_files_of_ranks(Store& store, const std::string& directory);
/// True if the directory itself has metadata.pkl and files named <item>_<r>.pt.
bool holds_torch_checkpointing(Store& store, const std::string& directory);

/// True if the directory itself has zero/<param>/fp32.pt. False if it is missing.
bool holds_universal(Store& store, const std::string& directory);

/// Reads what the files say of themselves. What can't be read, is missing or contradicts the
/// metadata goes to Metadata::findings. Throws if nothing can be read.
OpenedFiles open_files_of_ranks(Store& store, const Location& location);

}  // namespace reprise
