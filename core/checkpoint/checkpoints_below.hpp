#pragma once
// Finds all checkpoints below a directory, of whatever program, and what lies beside them.

#include <string>
#include <vector>

#include "reprise/store.hpp"

namespace reprise {

/// A file or directory that is not looked into.
struct BesideCheckpoints {
  std::string path;     ///< within the store
  std::string what;     ///< such as "a link"
  bool unread = false;  ///< true if it may have checkpoints, and can't be read
};

struct CheckpointsBelow {
  /// Directories, and files of torch.save that are in no such directory: paths within the store, in
  /// natural order.
  std::vector<std::string> checkpoints;
  std::vector<BesideCheckpoints> beside;
};

/// Looks through `root` and the directories below it, up to 16 levels. Checkpoints within a
/// checkpoint belong to it, and so do its files; only directories of safetensors or of a
/// torch.save model are looked through further. Links to directories are not followed. Throws
/// NOT_FOUND if there is no such directory. A directory below it that can't be read is among
/// `beside`.
CheckpointsBelow checkpoints_below(Store& store, const std::string& root);

}  // namespace reprise
