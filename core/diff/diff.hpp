#pragma once
// Compares the content of two checkpoints, whatever their sharding, from the stored bytes only.
// Tensors are compared by the elements at equal global indices; objects and common state are
// compared as values. Files next to the payload are compared too. Memory use is bounded: tensors
// are read block by block, objects one at a time.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/diff/tensor_source.hpp"
#include "core/geometry/compare.hpp"
#include "core/geometry/element_change.hpp"
#include "reprise/device.hpp"
#include "reprise/inspect.hpp"
#include "reprise/ports.hpp"

namespace reprise {

enum class DiffVerdict : std::uint8_t {
  kSame,
  kSameValues,  ///< element types differ; the values were compared on request and are the same
  kDifferent,
  kShape,  ///< global shapes differ; nothing was compared
  kDtype,  ///< element types differ; nothing was compared
  kOnlyLeft,
  kOnlyRight,
  kNotComparable,  ///< the item is bound to a layout, and the layouts differ
  /// The bytes differ, but they are not interpreted: the content may be equal. Or the item can't be
  /// read.
  kNotKnown,
};
/// Returns all verdicts: differences first, then what was not compared, then what is the same.
std::span<const DiffVerdict> all_diff_verdicts();
/// Returns "same", "different", "shape differs", ...
std::string_view name_of(DiffVerdict verdict);
/// True for every verdict except kSame, kSameValues, kNotComparable and kNotKnown.
bool counts_as_different(DiffVerdict verdict);

struct TensorDiff {
  struct Side {
    DType dtype = DType::kFloat32;
    /// Shape of the tensor in the job, even if it is stored flat.
    std::vector<std::int64_t> shape;
  };
  std::string key;
  DiffVerdict verdict = DiffVerdict::kSame;
  std::optional<Side> left;  ///< empty if this side lacks the key
  std::optional<Side> right;
  Comparison comparison;  ///< comparison.first is a row-major index
  /// Says how far the elements moved from left to right; empty if they are the same or not
  /// compared.
  std::optional<ElementChange> change = {};
  std::optional<Dims> first;  ///< global index of the first difference
  std::string first_left;     ///< value and bits of the left side at `first`
  std::string first_right;
  /// The type to which the elements of different types were converted; empty if they were not.
  std::optional<DType> compared_as = {};
  std::string reason = {};  ///< why it was not compared, or not all of it; used in messages
  bool unread = false;      ///< true if it can't be read, or not all of it
  /// Says where the elements come from, if find_sources() found that.
  std::optional<TensorSource> source = {};
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
  bool unread = false;                       ///< true if it can't be read
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
  /// Wrong checksums, and items that contradict the metadata or themselves. If there are any, the
  /// verdicts above are unreliable.
  Findings damage;
  /// Files and items that can't be read although they may be sound, one finding for each file and
  /// cause. The verdicts of these items are kNotKnown.
  Findings unread;
  Findings notes;              ///< facts worth knowing, such as checksums switched off
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
  /// Size of the blocks read from each side. Each thread uses three buffers of this size: one for
  /// each side, and one for staging.
  std::uint64_t block_bytes = std::uint64_t{128} << 10U;
  std::size_t differences_max = 8;  ///< upper limit per object
  /// If true, each record that is read is compared with its checksum. Objects and files are then
  /// read twice; tensors are not.
  bool checksums = true;
  /// If true, tensors of different element types are compared by value (compare_values.hpp), if
  /// there is a type to which both convert exactly.
  bool values = false;
  /// Compares tensors on its threads, some 16 MiB per thread at a time; null: on the caller's. The
  /// report is the same.
  Tasks* tasks = nullptr;
};

/// Compares two checkpoints. If an item can't be read or disagrees with the metadata, the report
/// says so (DiffReport::unread or damage), and the other items are compared all the same. Throws
/// EXTENT_MISMATCH, before it reads anything, if two items share bytes. Throws an Error if the
/// checkpoint's manifest is damaged, if it was replaced in the meantime, or if there is too little
/// memory. `device` must use host memory.
DiffReport diff(Checkpoint& left, Checkpoint& right, Device& device, const DiffOptions& options,
                Progress& progress);

}  // namespace reprise
