#pragma once
// Compares the content of two checkpoints, whatever their sharding, from the stored bytes only.
// Tensors by the elements at equal global indices, objects and common state as values, and the
// files next to the payload as well.
// Uses bounded memory: tensors block by block, objects one at a time.

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
  kNotComparable,  ///< bound to a layout, and the layouts differ: content unknown
  kNotKnown,       ///< not interpreted, and the bytes differ: content may still be equal
};
/// Returns "same", "different", "shape differs", ...
std::string_view name_of(DiffVerdict verdict);
/// True for all verdicts except kSame, kNotComparable and kNotKnown.
bool counts_as_different(DiffVerdict verdict);

struct TensorDiff {
  struct Side {
    DType dtype = DType::kFloat32;
    Dims shape;  ///< logical shape
  };
  std::string key;
  DiffVerdict verdict = DiffVerdict::kSame;
  std::optional<Side> left;  ///< nothing if this side lacks the key
  std::optional<Side> right;
  Comparison comparison;      ///< `first` is a row-major index
  std::optional<Dims> first;  ///< global index of the first difference
  std::string first_left;     ///< its value on each side, with the bits
  std::string first_right;
  std::string reason;  ///< reason for kNotComparable, for people
};

struct ObjectDiff {
  /// An object's key, kCommonStatePath for the common state, or a file name next to the payload.
  std::string key;
  DiffVerdict verdict = DiffVerdict::kSame;
  bool opaque = false;  ///< compared as bytes, because it contains names that are not interpreted
  std::vector<ValueDifference> differences;  ///< the first few differences
  std::string reason;                        ///< why the verdict is kNotComparable or kNotKnown
};
inline constexpr std::string_view kCommonStatePath = "common_state";

/// Says if state that is bound to a layout and could not be compared affects the verdict.
enum class LayoutBound : std::uint8_t {
  kDecides,   ///< it does: not everything was compared
  kAccepted,  ///< the caller accepts it as it is
};

struct DiffReport {
  std::vector<TensorDiff> tensors;  ///< sorted by key
  std::vector<ObjectDiff> objects;  ///< by key; the common state first
  std::vector<ObjectDiff> files;    ///< files next to the payload, by name
  Findings damage;                  ///< wrong checksums; the verdicts above are then unreliable
  Findings notes;                   ///< notable facts, such as checksums switched off
  std::uint64_t elements = 0;       ///< elements compared
  std::uint64_t bytes = 0;          ///< size of those elements on one side
  std::uint64_t tensors_compared = 0;
  std::uint64_t objects_compared = 0;
  std::uint64_t objects_opaque = 0;       ///< objects compared as bytes
  std::uint64_t files_compared = 0;       ///< files next to the payload
  std::uint64_t ignored_keys = 0;         ///< tensors, objects and files excluded by the options
  std::uint64_t ignored_differences = 0;  ///< excluded paths within the common state
  bool checksums = true;                  ///< copied from the options

  std::uint64_t different() const;
  std::uint64_t not_comparable() const;
  std::uint64_t not_known() const;
  /// True if nothing at all was compared.
  bool empty() const {
    return elements == 0 && objects_compared == 0 && files_compared == 0 && different() == 0;
  }
  DiffOutcome outcome(LayoutBound bound = LayoutBound::kDecides) const;
};

struct DiffOptions {
  /// Returns true for keys to compare: kCommonStatePath means the common state, a file next to the
  /// payload goes by its name. Empty function: compares all.
  std::function<bool(std::string_view key)> wanted;
  /// Returns true for differences inside the common state to ignore, for example at the path
  /// "common_state['args']['lr']". Empty function: ignores none.
  std::function<bool(std::string_view path)> path_ignored;
  std::uint64_t block_bytes = std::uint64_t{2} << 20U;  ///< per side; as much again is used on top
  std::size_t differences_max = 8;                      ///< limit per object
  bool checksums = true;  ///< checks each record that is read (reads payloads twice)
};

/// Throws an Error if needed bytes cannot be read or disagree with the metadata, and
/// EXTENT_MISMATCH, before reading anything, if two items share bytes. `device` must use host
/// memory.
DiffReport diff(Checkpoint& left, Checkpoint& right, Device& device, const DiffOptions& options,
                Progress& progress);

}  // namespace reprise
