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

/// Name of the file that describes a checkpoint, and the name ending of files that ranks write
/// individually: `__<rank>.metadata`.
inline constexpr std::string_view kMetadataFile = ".metadata";
/// Returns the rank in such a name; nothing for other names.
std::optional<std::int32_t> rank_of_metadata(std::string_view name);

struct Metadata {
  Catalog catalog;
  /// Ranks whose own metadata this is, ascending; empty for a single `.metadata` of all ranks.
  std::vector<std::int32_t> ranks = {};
  std::vector<PlannerEntry> planner_data;  ///< empty if the file has none (Megatron)
  std::string checkpoint_id;               ///< as written by the saver; informational
  std::string save_id;
  std::string version;             ///< "1.0.0" or empty
  bool has_local_plans = false;    ///< the file had Megatron's all_local_plans; not kept
  std::vector<std::string> notes;  ///< legal oddities, for `verify` to list
};

/// Reads one `.metadata`, or merges all `__<rank>.metadata` of a checkpoint, ascending: see
/// rank_tables.hpp. `names` are the file names, also used in messages. Work and memory are bounded
/// by the length of the bytes. Throws TORN_FILE, REFUSED_NAME, LIMIT, PATH_ESCAPE or UNSUPPORTED
/// with file and offset. Checks only the form: storage paths stay inside, counts and ranks match;
/// it does not check that chunks tile.
Metadata read_metadata(std::span<const ByteSpan> files, std::span<const std::string> names);

/// Writes what torch 2.4 to 2.13 and megatron-core read: protocol 4, plain classes, one planner
/// entry per key (the key itself if planner_data lacks it).
Bytes write_metadata(const Metadata& metadata);

/// Returns the metadata as one rank sees it: without items of other ranks, and with its own items
/// under the names the job knows. Includes all parts of shared items.
Metadata seen_by(const Metadata& all, std::int32_t rank);

struct MetadataFile {
  std::string name;
  Bytes content;
};
/// Returns `.metadata`, or one `__<rank>.metadata` per rank with what that rank knew.
std::vector<MetadataFile> metadata_files(const Metadata& metadata);

}  // namespace reprise
