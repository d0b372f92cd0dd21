#pragma once
// Writes mapped tensors of a checkpoint in another form, and proves that what was written is what
// was read: before the files become visible, they are read back through the inverse of the mapping
// and compared with the checkpoint, element by element.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/export/export_form.hpp"
#include "core/export/mapped_tensor.hpp"
#include "core/save/commit_protocol.hpp"
#include "reprise/device.hpp"
#include "reprise/inspect.hpp"
#include "reprise/ports.hpp"

namespace reprise {

struct ExportOptions {
  /// If true, what is read is compared with its checksums, so that damage is not copied.
  bool checksums = true;
  /// Small files to write beside, such as config.json: names and contents.
  std::vector<std::pair<std::string, std::string>> beside = {};
  /// Called right before the files become visible. An exception from it aborts the export.
  std::function<void()> last_look = {};
};

/// Elements of a stored tensor that no mapped tensor has.
struct LostElements {
  std::string key;
  std::uint64_t elements = 0;
  std::uint64_t of = 0;  ///< elements of the stored tensor
  Box first;             ///< the first box of these

  friend bool operator==(const LostElements&, const LostElements&) = default;
};

/// A tensor whose elements were converted.
struct ConvertedTensor {
  std::string key;
  DType from = DType::kFloat32;
  DType to = DType::kFloat32;
};

struct ExportReport {
  std::vector<std::string> files = {};  ///< names, the index and files beside among them
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;  ///< of all elements
  /// Elements that were read back and equal those of the checkpoint. The rest of `elements` are
  /// zeros that were added, and were read back, too.
  std::uint64_t proved = 0;
  std::vector<LostElements> lost = {};  ///< in catalog order
  std::vector<ConvertedTensor> converted = {};
  Findings notes = {};                ///< facts worth knowing, such as files without checksums
  std::vector<std::string> log = {};  ///< messages of the commit for the operator
};

/// Interfaces that export uses in addition to the source checkpoint. Each of `tasks.threads()`
/// pieces of work reads for itself, with about 10 MiB of memory.
struct ExportPorts {
  Store& store;  ///< store to write to
  Device& device;
  Tasks& tasks;
  Tasks& background;  ///< threads of its own, which sync files while others are written
  Progress& progress;
};

/// Returns what `tensors` lack of the catalog's tensors. Pure.
std::vector<LostElements> lost_in(const Catalog& catalog, const std::vector<MappedTensor>& tensors);

/// Writes the tensors to `target` in the given form. The target must not exist. Throws USAGE for
/// keys that occur twice or a type to which nothing is converted, UNSUPPORTED for what the form
/// does not have, and NO_SPACE before writing anything. Throws CHECKSUM if what was read back is
/// not what the checkpoint has, or if an exported tensor of the checkpoint does not have its
/// checksums; nothing of the target is visible then, nor after any other error.
ExportReport export_tensors(Checkpoint& source, const std::vector<MappedTensor>& tensors,
                            ExportForm& form, const CommitTarget& target,
                            const ExportOptions& options, const ExportPorts& ports);

}  // namespace reprise
