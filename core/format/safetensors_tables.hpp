#pragma once
// Makes a catalog of safetensors files: of one, of shards with or without an index, or of the
// pieces that torch's HuggingFaceStorageWriter writes, one file for each rank. Files of torch.save,
// which have the same kind of index, come in as if they had such headers.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/format/metadata.hpp"
#include "core/format/safetensors_header.hpp"

namespace reprise {

/// Name of the file that assigns the keys of a model to its shards.
inline constexpr std::string_view kSafetensorsIndexEnd = ".safetensors.index.json";
inline constexpr std::string_view kSafetensorsEnd = ".safetensors";
/// Name of a model's one file, and of the index of several.
inline constexpr std::string_view kSafetensorsModel = "model.safetensors";
inline constexpr std::string_view kSafetensorsModelIndex = "model.safetensors.index.json";
/// The same as transformers names them if they are files of torch.save.
inline constexpr std::string_view kTorchSaveModel = "pytorch_model.bin";
inline constexpr std::string_view kTorchSaveModelIndex = "pytorch_model.bin.index.json";
inline constexpr std::string_view kTorchSaveIndexEnd = ".bin.index.json";
inline constexpr std::string_view kTorchSaveEnd = ".bin";

/// An index: {"metadata": {"total_size": 24}, "weight_map": {"w": "model-00001-of-00002...", ...}}.
struct SafetensorsIndex {
  std::string display;                        ///< path as the user knows it
  std::map<std::string, std::string> shards;  ///< name of the file, by key
  std::optional<double> total_size;           ///< bytes of all tensors; some writers have a float
};
/// Throws the errors of parse_json_object, and TORN_FILE if there is no weight_map of texts.
SafetensorsIndex read_safetensors_index(ByteSpan json, const std::string& display);

/// Writes the index of shards; `shards` has the name of the file by key. No limit is checked.
std::string write_safetensors_index(const std::map<std::string, std::string>& shards,
                                    std::uint64_t total_size);

struct SafetensorsFile {
  std::string name;
  std::string display;  ///< path as the user knows it
  std::uint64_t size = 0;
  std::optional<SafetensorsHeader> header;  ///< empty if it can't be read, which was told already
};

/// Returns where pieces begin in their tensors, which torch notes in each file that it writes as
/// safetensors: {"key": {"saved_offsets": [0, 2]}}.
/// Empty if the file has no such note. Throws TORN_FILE.
std::map<std::string, std::vector<std::uint64_t>> saved_offsets_of(const SafetensorsHeader& header,
                                                                   const std::string& display);

/// The files that are read together, as one checkpoint, and their index.
struct SafetensorsSet {
  std::vector<SafetensorsFile> files;
  std::optional<SafetensorsIndex> index = {};
  bool alone = false;  ///< the user named this one file, whatever is beside it
  StoredForm form = StoredForm::kSafetensors;
};

/// Merges the files. File i becomes Catalog::files[i]. A tensor has a chunk in each file that has a
/// piece of it; what contradicts that, or the index, goes to Metadata::findings. Throws only for
/// pieces that can't have a place in a tensor.
Metadata tables_of(const SafetensorsSet& set);

/// The number in a name such as "model-00002-of-00003.safetensors" or
/// "pytorch_model-00002-of-00003.bin".
struct ShardNumber {
  std::string series;  ///< the name without the first number
  std::uint64_t number = 0;
  std::uint64_t count = 0;
};
std::optional<ShardNumber> shard_number_of(const std::string& name);
/// Returns the number of the rank in "shard-00002-model-00001-of-00003.safetensors".
std::optional<std::uint64_t> piece_number_of(const std::string& name);

}  // namespace reprise
