#pragma once
// `.metadata`: the pickle in which a torch_dist checkpoint describes itself.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/state/catalog.hpp"

namespace reprise {

/// One step of a path in the nested state dict: a dict key or a list position.
using PathStep = std::variant<std::string, std::int64_t>;

struct PlannerEntry {
  std::string key;
  std::vector<PathStep> path;
};

/// The file that describes a checkpoint, and how the names of those end that each rank wrote for
/// itself: `__<rank>.metadata`.
inline constexpr std::string_view kMetadataFile = ".metadata";
/// The rank in such a name; nothing for other names.
std::optional<std::int32_t> rank_of_metadata(std::string_view name);

struct Metadata {
  Catalog catalog;
  /// The ranks whose own metadata this is, ascending; none if one `.metadata` speaks for all.
  std::vector<std::int32_t> ranks = {};
  std::vector<PlannerEntry> planner_data;  ///< empty where the file has none (Megatron)
  std::string checkpoint_id;               ///< as written by the saver; informational
  std::string save_id;
  std::string version;             ///< "1.0.0" or empty
  bool has_local_plans = false;    ///< Megatron's all_local_plans was there; it is not kept
  std::vector<std::string> notes;  ///< oddities that are legal, for `verify` to list
};

/// Reads one `.metadata`, or all `__<rank>.metadata` of a checkpoint, ascending, as one: see
/// rank_tables.hpp. `names` are the files' names, also for messages. Work and memory are bounded by
/// the bytes' length. Throws TORN_FILE, REFUSED_NAME, LIMIT, PATH_ESCAPE or UNSUPPORTED with file
/// and offset. Checks form only: that storage paths stay inside, that counts and ranks fit
/// together; not that chunks tile.
Metadata read_metadata(std::span<const ByteSpan> files, std::span<const std::string> names);

/// What torch 2.4 to 2.13 and megatron-core read: protocol 4, plain classes, one planner entry per
/// key (the key itself where planner_data lacks it).
Bytes write_metadata(const Metadata& metadata);

/// The metadata as it is for one rank: what other ranks own is left out, and what it owns has the
/// name by which the job knows it. Parts of what ranks share are all there.
Metadata seen_by(const Metadata& all, std::int32_t rank);

struct MetadataFile {
  std::string name;
  Bytes content;
};
/// `.metadata`, or one `__<rank>.metadata` for each of the ranks, with what that rank knew.
std::vector<MetadataFile> metadata_files(const Metadata& metadata);

}  // namespace reprise
