#pragma once
// Reads and writes `.metadata`, the pickle in which a torch_dist checkpoint describes itself.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/format/made_items.hpp"
#include "core/format/releases.hpp"
#include "core/state/catalog.hpp"
#include "reprise/inspect.hpp"
#include "reprise/state.hpp"

namespace reprise {

struct PlannerEntry {
  std::string key;
  KeyPath path;
};

/// Name of the file that describes a checkpoint. Files that ranks write individually end in this
/// name: `__<rank>.metadata`.
inline constexpr std::string_view kMetadataFile = ".metadata";
/// Returns the rank in a name of the form `__<rank>.metadata`; nothing for other names.
std::optional<std::int32_t> rank_of_metadata(std::string_view name);

/// Says in which form a checkpoint is stored.
enum class StoredForm : std::uint8_t {
  kTorchDist,           ///< `.metadata` and payload files
  kSafetensors,         ///< one safetensors file, or shards
  kSafetensorsPieces,   ///< safetensors files with pieces of the same tensors, as torch writes them
  kTorchSave,           ///< one file of torch.save, or shards
  kRankFiles,           ///< a file of torch.save for each rank, as FSDP's users write them
  kTorchCheckpointing,  ///< a file of torch.save for each item and rank, and metadata.pkl
};

/// True for the forms that are made of files of torch.save, in which tensors may share memory.
constexpr bool is_of_torch_save(StoredForm form) { return form >= StoredForm::kTorchSave; }

struct Metadata {
  Catalog catalog;
  StoredForm form = StoredForm::kTorchDist;
  /// Problems of files without `.metadata` that were found when they were opened, and notes.
  /// `verify` lists them.
  Findings findings = {};
  /// Ranks that each wrote their own metadata, ascending; empty if a single `.metadata` serves all
  /// ranks.
  std::vector<std::int32_t> ranks = {};
  std::vector<PlannerEntry> planner_data;  ///< empty for Megatron-Core's files, which have none
  std::string checkpoint_id;               ///< as the saver wrote it; informational
  std::string save_id;
  std::string version;           ///< "1.0.0" or empty
  Forms forms = {};              ///< what `.metadata` itself shows of its writer
  bool has_local_plans = false;  ///< the file had Megatron's all_local_plans (not kept)
  /// What all safetensors files that were read say alike of themselves, such as {"format": "pt"},
  /// without what torch notes there about pieces.
  std::map<std::string, std::string> texts = {};
  std::vector<std::string> notes;  ///< unusual but legal facts, which `verify` lists
  /// The objects of a checkpoint that stores them in no items of their own, as if each were one in
  /// the file `made_file` of the catalog, which is in no directory.
  std::shared_ptr<const MadeItems> made = {};
  FileIndex made_file = kNoFile;
  /// Keys of objects that DCP has no place for, so that no other format has them: empty dicts, and
  /// attributes of dicts.
  std::vector<std::string> without_place = {};
  /// Names of tensors that are parts of ranks and don't say where they belong, so that nobody knows
  /// if they are whole.
  std::vector<std::string> unplaced = {};
  /// True to write the strides that the tensors' traits have. torch 2.15 writes and reads them;
  /// earlier torch fails on every file that has them. A reader never sets this.
  bool write_strides = false;
};

/// Reads one `.metadata`, or merges all `__<rank>.metadata` of a checkpoint in ascending order (see
/// rank_tables.hpp). `names` has the files' names, which also appear in messages. Work and memory
/// are bounded by the length of the files. Throws TORN_FILE, REFUSED_NAME, LIMIT, PATH_ESCAPE or
/// UNSUPPORTED with file and offset. Checks only the form, for example that storage paths stay
/// inside the directory and that counts and ranks match. Does not check that chunks tile their
/// tensors.
Metadata read_metadata(std::span<const ByteSpan> files, std::span<const std::string> names);

/// Writes metadata that torch 2.4 to 2.15 and megatron-core can read: protocol 4, plain classes,
/// no strides unless `write_strides`, and one planner entry per key. If planner_data lacks a key,
/// the path in its entry is the key itself.
Bytes write_metadata(const Metadata& metadata);

/// Returns the metadata for one rank of the job. Leaves out items that belong to other ranks, and
/// removes the rank from the keys of the rank's own items. Shared items keep all their parts.
Metadata seen_by(const Metadata& all, std::int32_t rank);

struct MetadataFile {
  std::string name;
  Bytes content;
};
/// Returns a single `.metadata`. If the ranks wrote their own metadata, returns one
/// `__<rank>.metadata` for each of these ranks instead, with the items of that rank.
std::vector<MetadataFile> metadata_files(const Metadata& metadata);

}  // namespace reprise
