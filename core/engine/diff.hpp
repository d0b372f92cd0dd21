#pragma once
// Do two checkpoints hold the same content, whatever their sharding? Judged from the stored bytes
// alone. Tensors by the elements at the same global index, objects and common state as values.
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
#include "core/ports/device.hpp"
#include "core/ports/trace.hpp"

namespace reprise {

enum class DiffVerdict : std::uint8_t {
  kSame,
  kDifferent,
  kShape,  ///< global shapes differ; nothing was compared
  kDtype,  ///< element types differ; nothing was compared
  kOnlyLeft,
  kOnlyRight,
  kNotComparable,  ///< bound to a layout, and the layouts differ: says nothing about the content
};
/// "same", "different", "shape differs", ...
std::string_view name_of(DiffVerdict verdict);
/// True for all but kSame and kNotComparable.
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
};

struct ObjectDiff {
  std::string key;  ///< of an object; kCommonStatePath for the common state
  DiffVerdict verdict = DiffVerdict::kSame;
  bool opaque = false;  ///< compared as bytes, because it holds names that are not interpreted
  std::vector<ValueDifference> differences;  ///< the first few
  std::string reason;                        ///< of kNotComparable, for people
};
inline constexpr std::string_view kCommonStatePath = "common_state";

struct DiffReport {
  std::vector<TensorDiff> tensors;  ///< by key
  std::vector<ObjectDiff> objects;  ///< by key; the common state first
  Findings damage;                  ///< wrong checksums: the verdicts above can't be relied on
  Findings notes;                   ///< what is worth knowing, such as checksums switched off
  std::uint64_t elements = 0;       ///< compared
  std::uint64_t bytes = 0;          ///< of those elements, one side
  std::uint64_t objects_compared = 0;
  std::uint64_t objects_opaque = 0;

  std::uint64_t different() const;
  std::uint64_t not_comparable() const;
  /// Nothing at all was compared.
  bool empty() const { return elements == 0 && objects_compared == 0 && different() == 0; }
};

struct DiffOptions {
  /// Which keys take part; for differences inside the common state the path is asked, for example
  /// "common_state['args']['lr']". Empty: all.
  std::function<bool(std::string_view key)> wanted;
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
