#pragma once
// The files of a checkpoint by what they are, for faults that are to strike one of them.

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
  kCheckpoint,  ///< a directory iter_<n>, whole
};
/// "payload", "metadata", ...; and the inverse.
std::string_view name_of(FileKind kind);
std::vector<std::string_view> file_kind_names();
std::optional<FileKind> file_kind_named(std::string_view name);

/// Returns nothing for a path of another kind. What a save puts beside a file's place counts as
/// that file, and a directory that is being saved as the checkpoint.
std::optional<FileKind> kind_of_file(std::string_view path);

/// The files of that kind in `directory`, sorted by name.
std::vector<std::string> files_of(Store& store, const std::string& directory, FileKind kind);

}  // namespace reprise::sim
