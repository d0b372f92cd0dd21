#pragma once
// The forms in which tensors are written. A form lays out files whose sizes are known before any
// element is read, so that all threads can write at once:
//
//   file   [ around ][ part: elements of a box of a tensor ][ around ][ part ][ around ]
//
// The bytes around the parts are written last, since they may have checksums of the parts.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/export/mapped_tensor.hpp"
#include "core/save/commit_protocol.hpp"
#include "reprise/store.hpp"

namespace reprise {

/// A box of a mapped tensor, and where its elements stand in a file, row-major.
struct OutputPart {
  std::uint32_t tensor = 0;  ///< index of the mapped tensor
  Box box;
  std::uint64_t begin = 0;  ///< offset of the first element in the file
};

/// Writes bytes to a file from an offset on.
using PutBytes = std::function<void(std::uint64_t begin, ByteSpan bytes)>;

struct OutputFile {
  std::string name;
  std::uint64_t bytes = 0;        ///< size of the whole file
  std::vector<OutputPart> parts;  ///< in the order of the file
  bool needs_checksums = false;   ///< true if put_around wants the CRC-32 of each part
  /// Writes all bytes around the parts.
  std::function<void(std::span<const std::uint32_t> checksums, const PutBytes& put)> put_around;
};

/// One form, for one export. The calls come in the order in which they stand here.
class ExportForm {
 public:
  virtual ~ExportForm() = default;

  /// Throws UNSUPPORTED if this form can't hold the tensor.
  virtual void require_holds(const MappedTensor& tensor) const = 0;
  /// Returns the files to write. `tensors` must outlive the form.
  virtual std::vector<OutputFile> lay_out(const std::vector<MappedTensor>& tensors) = 0;
  /// Returns the names of the small files that the form adds.
  virtual std::vector<std::string> small_files() const { return {}; }
  /// Takes the lock, removes what a killed export left, and makes the place to write to. `names`
  /// are those of all files.
  virtual void prepare(Store& store, CommitTarget& target, const std::vector<std::string>& names);
  /// Returns the path to which a file is written.
  virtual std::string path_of(const CommitTarget& target, const std::string& name) const;
  /// Called once all files are written. Writes what is needed to open them.
  virtual void complete(Store& store, const CommitTarget& target);
  /// Opens what was written, for the proof.
  virtual Checkpoint opened(Store& store, const CommitTarget& target) = 0;
  /// Makes the files visible.
  virtual void commit(Store& store, CommitTarget& target) = 0;
  /// Releases the lock and removes all files. Never throws.
  virtual void abandon(Store& store, CommitTarget& target);
};

/// Returns the bytes that a tensor has in a file.
std::uint64_t bytes_of(const MappedTensor& tensor);
/// Moves the written directory to the target.
void publish_directory(Store& store, CommitTarget& target);

}  // namespace reprise
