#pragma once
// The instant at which a checkpoint exists, as a protocol of named steps run by one loop.
//
//   iter_0000010.saving/   payload files, synced by their writers
//     common_state         common.pt
//     metadata             .metadata
//     backend_info         metadata.json
//     manifest             integrity.json (if asked for)
//     sync_directory
//     swap_in              rename to iter_0000010; exchange with it if it exists
//     sync_parent          <- from here on the checkpoint exists
//     tracker              latest_checkpointed_iteration.txt, beside and renamed
//     remove_replaced      what stood there before; failing here is no failure of the save
//
// A store that cannot exchange moves the old directory to iter_0000010.replaced first; `locate`
// finds it there if a crash falls between the two renames.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.hpp"
#include "core/engine/phases.hpp"
#include "core/format/integrity.hpp"
#include "core/format/metadata.hpp"
#include "core/ports/store.hpp"
#include "core/state/value.hpp"

namespace reprise {

/// What the protocol appends to a directory's name: while it is written, and while it makes way.
inline constexpr std::string_view kSavingSuffix = ".saving";
inline constexpr std::string_view kReplacedSuffix = ".replaced";

/// Where a checkpoint goes: `directory` within the store; with a step the tracker beside it moves.
struct CommitTarget {
  std::string directory;
  std::optional<Step> step;

  /// `<root>/iter_%07d` with the root's tracker.
  static CommitTarget iteration(const std::string& root, Step step);
  std::string saving() const { return directory + std::string(kSavingSuffix); }
  std::string replaced() const { return directory + std::string(kReplacedSuffix); }
};

struct CommitContent {
  Metadata metadata;
  /// A dict; without it neither common.pt nor metadata.json is written (plain DCP).
  std::optional<Dict> common;
  bool manifest = false;
  std::vector<FileDigest> digests;  ///< of payload files
};

using CommitStep = ProtocolStep;

/// Removes what an earlier crash left and makes the directory to write into. One rank calls it.
void prepare(Store& store, const CommitTarget& target);
/// The steps in order. One rank runs them, after every payload file is durable. The arguments
/// outlive them.
std::vector<CommitStep> commit_protocol(Store& store, const CommitTarget& target,
                                        const CommitContent& content);

}  // namespace reprise
