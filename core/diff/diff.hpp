#pragma once
// Compares the content of two checkpoints, whatever their sharding, from the stored bytes only.
// Tensors are compared by the elements at equal global indices; objects and common state are
// compared as values. Files next to the payload are compared too. Memory use is bounded: tensors
// are read block by block, objects one at a time.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/geometry/compare.hpp"
#include "reprise/device.hpp"
#include "reprise/inspect.hpp"
#include "reprise/ports.hpp"

namespace reprise {

enum class DiffVerdict : std::uint8_t {
  kSame,
  kDifferent,
  kShape,  ///< global shapes differ; nothing was compared
  kDtype,  ///< element types differ; nothing was compared
  kOnlyLeft,
  kOnlyRight,
  kNotComparable,  ///< the item is bound to a layout, and the layouts differ
  kNotKnown,       ///< the bytes differ, but they are not interpreted: the content may be equal
};
/// Returns "same", "different", "shape differs", ...
std::string_view name_of(DiffVerdict verdict);
/// True for every verdict except kSame, kNotComparable and kNotKnown.
bool counts_as_different(DiffVerdict verdict);

struct TensorDiff {
  struct Side {
    DType dtype = DType::kFloat32;
    Dims shape;  ///< shape of the tensor in the job, even if it is stored flat
  };
  std::string key;
  DiffVerdict verdict = DiffVerdict::kSame;
  std::optional<Side> left;  ///< empty if this side lacks the key
  std::optional<Side> right;
  Comparison comparison;      ///< comparison.first is a row-major index
  std::optional<Dims> first;  ///< global index of the first difference
  std::string first_left;     ///< value and bits of the left side at `first`
  std::string first_right;
  std::string reason;  ///< reason for kNotComparable; used in messages
};

struct ObjectDiff {
  /// Key of the object, kCommonStatePath for the common state, or the name of a file next to the
  /// payload.
  std::string key;
  DiffVerdict verdict = DiffVerdict::kSame;
  /// True if the item was compared as bytes, because at least one side cannot be interpreted.
  bool opaque = false;
  std::vector<ValueDifference> differences;  ///< the first few differences
  std::string reason;                        ///< why the verdict is kNotComparable or kNotKnown
};
inline constexpr std::string_view kCommonStatePath = "common_state";

/// Says how the verdict treats state that was not compared because it is bound to a layout.
enum class LayoutBound : std::uint8_t {
  kDecides,   ///< the verdict can say that not everything was compared
  kAccepted,  ///< the verdict ignores this state, as the caller allows
};

struct DiffReport {
  std::vector<TensorDiff> tensors;  ///< sorted by key
  std::vector<ObjectDiff> objects;  ///< sorted by key, with the common state first
  std::vector<ObjectDiff> files;    ///< files next to the payload, sorted by name
  Findings damage;  ///< wrong checksums; the verdicts above are unreliable if there are any
  Findings notes;   ///< facts worth knowing, such as checksums switched off
  std::uint64_t elements = 0;  ///< number of elements compared
  std::uint64_t bytes = 0;     ///< size of the compared elements on one side
  std::uint64_t tensors_compared = 0;
  std::uint64_t objects_compared = 0;
  std::uint64_t objects_opaque = 0;  ///< number of objects compared as bytes
  std::uint64_t files_compared = 0;  ///< number of files next to the payload that were compared
  std::uint64_t ignored_keys = 0;    ///< tensors, objects and files that the options exclude
  std::uint64_t ignored_differences = 0;  ///< excluded differences in the common state
  bool checksums = true;                  ///< true if the options requested checksums

  std::uint64_t different() const;
  std::uint64_t not_comparable() const;
  std::uint64_t not_known() const;
  /// True if nothing was compared.
  bool empty() const {
    return elements == 0 && objects_compared == 0 && files_compared == 0 && different() == 0;
  }
  DiffOutcome outcome(LayoutBound bound = LayoutBound::kDecides) const;
};

struct DiffOptions {
  /// Returns true for each key to compare. kCommonStatePath stands for the common state; a file
  /// next to the payload is identified by its name. If no function is set, everything is compared.
  std::function<bool(std::string_view key)> wanted;
  /// Returns true for differences in the common state that are to be ignored, for example at the
  /// path "common_state['args']['lr']". If no function is set, no difference is ignored.
  std::function<bool(std::string_view path)> path_ignored;
  /// Size of the blocks read from each side. The comparison uses three buffers of this size: one
  /// for each side, and one for staging.
  std::uint64_t block_bytes = std::uint64_t{2} << 20U;
  std::size_t differences_max = 8;  ///< upper limit per object
  /// If true, each record that is read is compared with its checksum. Objects and files are then
  /// read twice; tensors are not.
  bool checksums = true;
};

/// Compares two checkpoints. Throws an Error if needed bytes cannot be read or disagree with the
/// metadata. Throws EXTENT_MISMATCH, before it reads anything, if two items share bytes. `device`
/// must use host memory.
DiffReport diff(Checkpoint& left, Checkpoint& right, Device& device, const DiffOptions& options,
                Progress& progress);

}  // namespace reprise
