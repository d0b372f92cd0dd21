#pragma once
// Seals a checkpoint: DIR/reprise-seal.json has the SHA-256 of each file and the digest of each
// chunk. Whoever compares the directory with the seal later notices any change of its bytes. A seal
// proves nothing to somebody who does not trust its keeper: keep it elsewhere for that.
//
//   {"format": "reprise-seal", "version": 1,
//    "files": [{"name": "__0_0.distcp", "bytes": 4096, "sha256": "<64 digits>"}, ...],
//    "tensors": [{"key": "w", "dtype": "float32", "shape": [4, 2], "digest": "<16 digits>",
//                 "chunks": [{"at": [0, 0], "size": [2, 2], "digest": "<16 digits>"}, ...]}, ...]}

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/checkpoint/tensor_survey.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// Most bytes of a seal.
inline constexpr std::uint64_t kSealBytesMax = std::uint64_t{256} << 20U;

struct SealedFile {
  std::string name;  ///< within the directory; may contain '/'
  std::uint64_t bytes = 0;
  std::string sha256;  ///< 64 lower-case hexadecimal digits

  friend bool operator==(const SealedFile&, const SealedFile&) = default;
};

struct Seal {
  std::vector<SealedFile> files;  ///< sorted by name
  std::string tensors;            ///< the JSON array, as text

  friend bool operator==(const Seal&, const Seal&) = default;
};

/// Reads all files of the checkpoint's directory but the seal, each on one thread, and then the
/// elements of all tensors. Throws UNSUPPORTED with the name for a link or a special file, CHECKSUM
/// if content does not have its recorded checksum, and the errors of survey().
Seal seal_of(Checkpoint& checkpoint, const SurveyPorts& ports);

Bytes write_seal(const Seal& seal);
/// Throws TORN_FILE if the text is no seal, LIMIT if it is too large, and UNSUPPORTED for a later
/// version.
Seal read_seal(ByteSpan text, const ErrorPlace& place);

/// Compares the files of a directory with a seal: a file that is missing, of another size or of
/// another content is an error, and so is one that the seal does not name.
Findings compare_with_seal(Store& store, const std::string& directory, const Seal& seal,
                           const SurveyPorts& ports);

}  // namespace reprise
