#pragma once
// Opens files that together are one checkpoint without a `.metadata`: those of safetensors, or of
// torch.save.

#include <cstdint>
#include <string>

#include "core/checkpoint/locate_checkpoint.hpp"
#include "core/format/metadata.hpp"
#include "reprise/store.hpp"

namespace reprise {

/// Name of the file that says of which model an adapter is.
inline constexpr std::string_view kAdapterConfig = "adapter_config.json";
/// Name of the file that PEFT writes an adapter to.
inline constexpr std::string_view kAdapterFile = "adapter_model.safetensors";

/// True if the directory itself has safetensors files, or an index of such. False if it is missing.
bool holds_safetensors(Store& store, const std::string& directory);

/// True if the directory itself has a model as transformers wrote it before safetensors:
/// pytorch_model.bin, its shards or their index. False if it is missing.
bool holds_torch_save(Store& store, const std::string& directory);

struct OpenedFiles {
  Metadata metadata;
  std::uint64_t hash = 0;  ///< of the index, and of names, sizes and headers of the files
};

/// Reads the index and the headers of the files that belong together: those that the index names;
/// without an index, model.safetensors; without that, torch's pieces, an adapter, or all files that
/// there are. Of files of torch.save, the one that is named, pytorch_model.bin or its shards. What
/// can't be read, is missing or not read goes to Metadata::findings. Throws if nothing can be read.
OpenedFiles open_files(Store& store, const Location& location);

class Checkpoint;

/// True if the checkpoint is the file of an adapter, without its model.
bool is_adapter(const Checkpoint& checkpoint);

/// True if a chunk of a torch_dist checkpoint has only as many bytes as its elements, which no
/// archive has.
bool may_hold_safetensors(const Catalog& catalog);
/// Finds the tensors that torch wrote into payload files as safetensors
/// (SerializationFormat.SAFETENSORS): their chunks then are elements at their real places. In
/// `.metadata`, the ranges of a file's tensors all begin where its safetensors data does, and are
/// as long as the elements. What can't be found goes to Metadata::findings.
void find_safetensors_within(Checkpoint& checkpoint, Metadata& metadata);

}  // namespace reprise
