#pragma once
// Defines the kinds of files in a checkpoint, for faults that strike only one kind.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/store.hpp"

namespace reprise::sim {

enum class FileKind : std::uint8_t {
  kPayload,
  kMetadata,
  kCommon,
  kBackend,
  kManifest,
  kTracker,
  kCheckpoint,  ///< a whole directory iter_<n>, not a single file
};
/// Returns "payload", "metadata", ...; file_kind_named() is the inverse.
std::string_view name_of(FileKind kind);
std::vector<std::string_view> file_kind_names();
std::optional<FileKind> file_kind_named(std::string_view name);

/// Returns the kind of file at the path; nothing if the path is of no kind. A temporary file of a
/// save counts as the file that it will become, and a directory that is being saved counts as the
/// checkpoint.
std::optional<FileKind> kind_of_file(std::string_view path);

/// Returns the files of that kind in `directory`, sorted by name.
std::vector<std::string> files_of(Store& store, const std::string& directory, FileKind kind);

}  // namespace reprise::sim
