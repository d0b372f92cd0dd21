#pragma once
// integrity.json: checksums of the files directly in a checkpoint's directory, itself excepted.
// Megatron-Core 0.18 and later write it on request.
//
//   {"algorithm": "sha256", "files": {"<name>": "<64 lower-case hexadecimal digits>"}}

#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/format/sha256.hpp"
#include "reprise/error.hpp"

namespace reprise {

inline constexpr std::string_view kIntegrityFile = "integrity.json";

struct FileDigest {
  std::string name;
  Sha256Digest digest{};

  friend bool operator==(const FileDigest&, const FileDigest&) = default;
};

struct IntegrityManifest {
  std::vector<FileDigest> files;  ///< sorted by name

  /// Null if the manifest does not list it.
  const FileDigest* find(std::string_view name) const;
};

/// False for a user's own file of that name: a JSON object with neither 'algorithm' nor 'files', or
/// a whole JSON document that is no object. Text that is no JSON may have been a manifest.
bool may_be_integrity(ByteSpan bytes);

/// TORN_FILE with the offset for other JSON or a digest of another form, UNSUPPORTED for another
/// algorithm, PATH_ESCAPE for a name that is no plain file name.
IntegrityManifest read_integrity(ByteSpan bytes, const ErrorPlace& place = {});

/// Indented by 2, as Megatron-Core writes it, sorted by name. UNSUPPORTED if a name is not UTF-8.
Bytes write_integrity(const IntegrityManifest& manifest);

}  // namespace reprise
