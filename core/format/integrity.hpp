#pragma once
// Reads and writes integrity.json. This manifest lists the checksums of all other files that are
// directly in a checkpoint's directory. Megatron-Core 0.18 and later write it on request.
//
//   {"algorithm": "sha256", "files": {"<name>": "<64 lower-case hexadecimal digits>"}}

#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/base/sha256.hpp"
#include "reprise/error.hpp"

namespace reprise {

inline constexpr std::string_view kIntegrityFile = "integrity.json";
/// A seal (core/seal), which says what the other files of the directory held when it was made.
inline constexpr std::string_view kSealFile = "reprise-seal.json";

struct FileDigest {
  std::string name;
  Sha256Digest digest{};

  friend bool operator==(const FileDigest&, const FileDigest&) = default;
};

struct IntegrityManifest {
  std::vector<FileDigest> files;  ///< sorted by name

  /// Returns the file's digest; null if the manifest does not list the file.
  const FileDigest* find(std::string_view name) const;
};

/// True if the bytes of a file named integrity.json may be a manifest, perhaps a damaged one. False
/// if they must be a user's own file: a JSON object with neither 'algorithm' nor 'files', or valid
/// JSON that is not an object. Invalid JSON may be a damaged manifest.
bool may_be_integrity(ByteSpan bytes);

/// Reads a manifest. Throws TORN_FILE with the offset if the text is not a valid manifest,
/// UNSUPPORTED if the algorithm is not SHA-256, and PATH_ESCAPE if a listed name is not a plain
/// file name.
IntegrityManifest read_integrity(ByteSpan bytes, const ErrorPlace& place = {});

/// Writes a manifest with sorted names, indented by 2 spaces like the manifests of Megatron-Core.
/// Throws UNSUPPORTED if a name is not UTF-8.
Bytes write_integrity(const IntegrityManifest& manifest);

}  // namespace reprise
