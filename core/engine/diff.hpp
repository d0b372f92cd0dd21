#pragma once
// Do two checkpoints hold the same content, whatever their sharding? Judged from the stored bytes
// alone. Tensors by the elements at the same global index, objects and common state as values, and
// what stands beside the payload, too.
// Memory is bounded: tensors block by block, objects one at a time.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/checkpoint.hpp"
#include "core/engine/finding.hpp"
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
  kNotComparable,  ///< bound to a layout, and the layouts differ: says nothing about the content
  kNotKnown,       ///< not interpreted, and the bytes differ: the content may be the same or not
};
/// "same", "different", "shape differs", ...
std::string_view name_of(DiffVerdict verdict);
/// True for all but kSame, kNotComparable and kNotKnown.
bool counts_as_different(DiffVerdict verdict);

struct TensorDiff {
  struct Side {
    DType dtype = DType::kFloat32;
    Dims shape;  ///< logical
  };
  std::string key;
  DiffVerdict verdict = DiffVerdict::kSame;
  std::optional<Side> left;  ///< nothing where the key is not there
  std::optional<Side> right;
  Comparison comparison;      ///< `first` is a row-major index
  std::optional<Dims> first;  ///< global index of the first difference
  std::string first_left;     ///< its values and bits
  std::string first_right;
  std::string reason;  ///< of kNotComparable, for people
};

struct ObjectDiff {
  /// Key of an object, kCommonStatePath for the common state, or name of a file beside the payload.
  std::string key;
  DiffVerdict verdict = DiffVerdict::kSame;
  bool opaque = false;  ///< compared as bytes, because it holds names that are not interpreted
  std::vector<ValueDifference> differences;  ///< the first few
  std::string reason;                        ///< of kNotComparable and kNotKnown, for people
};
inline constexpr std::string_view kCommonStatePath = "common_state";

/// Says how things that are bound to a layout and could not be compared count.
enum class LayoutBound : std::uint8_t {
  kDecides,   ///< not all was compared
  kAccepted,  ///< the caller takes them as they are
};

struct DiffReport {
  std::vector<TensorDiff> tensors;  ///< by key
  std::vector<ObjectDiff> objects;  ///< by key; the common state first
  std::vector<ObjectDiff> files;    ///< beside the payload, by name
  Findings damage;                  ///< wrong checksums: the verdicts above can't be relied on
  Findings notes;                   ///< what is worth knowing, such as checksums switched off
  std::uint64_t elements = 0;       ///< compared
  std::uint64_t bytes = 0;          ///< of those elements, one side
  std::uint64_t tensors_compared = 0;
  std::uint64_t objects_compared = 0;
  std::uint64_t objects_opaque = 0;       ///< of these, the ones compared as bytes
  std::uint64_t files_compared = 0;       ///< beside the payload
  std::uint64_t ignored_keys = 0;         ///< tensors, objects and files that took no part
  std::uint64_t ignored_differences = 0;  ///< at paths in the common state that took no part
  bool checksums = true;                  ///< as in the options

  std::uint64_t different() const;
  std::uint64_t not_comparable() const;
  std::uint64_t not_known() const;
  /// Nothing at all was compared.
  bool empty() const {
    return elements == 0 && objects_compared == 0 && files_compared == 0 && different() == 0;
  }
  DiffOutcome outcome(LayoutBound bound = LayoutBound::kDecides) const;
};

struct DiffOptions {
  /// True for keys to compare; the common state's is kCommonStatePath, and a file beside the
  /// payload goes by its name. Empty: all.
  std::function<bool(std::string_view key)> wanted;
  /// True for differences inside the common state to ignore, for example at the path
  /// "common_state['args']['lr']". Empty: none.
  std::function<bool(std::string_view path)> path_ignored;
  std::uint64_t block_bytes = std::uint64_t{2} << 20U;  ///< per side; twice that is used besides
  std::size_t differences_max = 8;                      ///< per object
  bool checksums = true;  ///< check each record that is read (reads payloads twice)
};

/// Throws an Error where bytes that are needed cannot be read or are not what the metadata says,
/// and EXTENT_MISMATCH before anything is read if two items share bytes. `device` holds host
/// memory.
DiffReport diff(Checkpoint& left, Checkpoint& right, Device& device, const DiffOptions& options,
                Progress& progress);

}  // namespace reprise
