#pragma once
// Lists the files beside a checkpoint's payload and metadata: Lightning's meta.pt, states of data
// loaders, a directory of modelopt. Whoever writes the checkpoint anew carries them along.

#include <cstdint>
#include <string>
#include <vector>

#include "core/engine/checkpoint.hpp"

namespace reprise {

struct BesidePayload {
  struct File {
    std::string name;  ///< relative to the checkpoint's directory, may have '/'
    std::uint64_t bytes = 0;
  };
  std::vector<std::string> directories;  ///< likewise, each after the one that it is in
  std::vector<File> files;
  /// Names that are not carried, with the reason: links, what is no file, and what an earlier save
  /// left.
  std::vector<std::string> left_out;
  std::vector<File> linked_files;        ///< of them, links to files, or to nothing
  std::vector<File> linked_directories;  ///< of them, links to directories
  std::vector<File> no_files;            ///< of them, pipes, sockets, devices

  std::uint64_t bytes() const;
  /// Returns the names of all directories and files, each directory before what is in it.
  std::vector<std::string> all_names() const;
  /// "meta.pt", "modelopt_state/": as they stand in the directory.
  std::vector<std::string> names() const;
};

/// True if there is an integrity.json that is, or may have been, a manifest; a file of that name in
/// another form is its owner's.
bool has_manifest(const Checkpoint& checkpoint);
/// Throws as read_integrity, naming the file, if there is a manifest and it can't be read.
void require_readable_manifest(const Checkpoint& checkpoint);

/// True if there is a common.pt that is no common state but its owner's, beside plain DCP.
bool has_own_common_file(Checkpoint& checkpoint);

/// All but payload, metadata and the manifest; of directories all that is in them. Links are not
/// followed.
BesidePayload beside_payload(const Checkpoint& checkpoint);

}  // namespace reprise
