#pragma once
// Lists the files next to a checkpoint's payload and metadata: Lightning's meta.pt, data loader
// states, a modelopt directory. A rewritten checkpoint gets copies of these files.

#include <cstdint>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"

namespace reprise {

struct BesidePayload {
  struct File {
    std::string name;  ///< relative to the checkpoint's directory; may contain '/'
    std::uint64_t bytes = 0;
  };
  /// Names relative to the checkpoint's directory. A parent comes before its children.
  std::vector<std::string> directories;
  std::vector<File> files;
  /// Names that are not copied, each with the reason: links, special files such as pipes, and
  /// leftovers of an earlier save.
  std::vector<std::string> left_out;
  std::vector<File> linked_files;        ///< links to files, and dangling links
  std::vector<File> linked_directories;  ///< links to directories
  std::vector<File> no_files;            ///< pipes, sockets and devices

  std::uint64_t bytes() const;
  /// Returns the names of all directories and files, each directory before its contents.
  std::vector<std::string> all_names() const;
  /// Returns the directory's top-level names, such as "meta.pt" and "modelopt_state/".
  std::vector<std::string> names() const;
};

/// True if integrity.json exists and is a manifest, intact or damaged. An integrity.json in any
/// other form belongs to the user.
bool has_manifest(const Checkpoint& checkpoint);
/// If there is a manifest that cannot be read, throws the same errors as read_integrity, with the
/// file's name.
void require_readable_manifest(const Checkpoint& checkpoint);

/// True if a plain DCP checkpoint has a common.pt that belongs to the user and is not common state.
bool has_own_common_file(Checkpoint& checkpoint);

/// Returns everything except payload, metadata and manifest. A directory is returned with all its
/// contents. Links are not followed.
BesidePayload beside_payload(const Checkpoint& checkpoint);

}  // namespace reprise
