#pragma once
// Says which releases of which packages wrote a checkpoint and which can read it, as far as its
// forms show that.

#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/format/releases.hpp"

namespace reprise::cli {

/// Releases of one program, with the reasons.
struct ToldReleases {
  std::string program;  ///< "torch", "megatron-core", "reprise", "torch_checkpointing"
  std::string who;      ///< such as "torch >= 2.15" or "reprise 0.1.0"
  std::vector<std::string> because = {};  ///< what shows it, for sentences
  std::optional<Version> first = {};      ///< nothing if there is no bound
  std::optional<Version> last = {};
  bool none = false;  ///< true if no release can have written or can read it
};

struct ReleasesOf {
  std::vector<ToldReleases> writers;       ///< empty if nothing shows who wrote it
  std::vector<ToldReleases> readers = {};  ///< empty if it is not a torch_dist checkpoint
  /// Those for which `reshard` can write it, older than `readers`.
  std::vector<Release> older = {};
  /// True if `reshard --optimizer` makes its optimizer's state one that newer releases read.
  bool flattened = false;
};

ReleasesOf releases_of(Checkpoint& checkpoint);

/// Returns one line, such as "torch >= 2.15 (its tensor properties have strides)".
std::string release_text(const std::vector<ToldReleases>& told);
/// Returns what makes a checkpoint for other releases; empty if nothing does.
std::string advice_of(const ReleasesOf& releases);

}  // namespace reprise::cli
