#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/geometry/box.hpp"
#include "core/state/catalog.hpp"
#include "reprise/error.hpp"
#include "reprise/value.hpp"

namespace reprise {

class UnreadItems;
struct DiffOptions;
struct Finding;
template <class Item>
struct Both;
enum class DiffVerdict : std::uint8_t;

/// Returns each item of both sides, with the one of the same name and rank on the other side if
/// there is one.
std::vector<Both<StoredTensor>> pair_tensors(const std::vector<StoredTensor>& left,
                                             const std::vector<StoredTensor>& right);
std::vector<Both<StoredObject>> pair_objects(const std::vector<StoredObject>& left,
                                             const std::vector<StoredObject>& right);
/// Compares global shapes and element types. Returns kSame if the elements must be compared.
DiffVerdict judge_form(const StoredTensor& left, const StoredTensor& right,
                       const DiffOptions& options);
/// Returns one box, which is the whole tensor.
std::vector<Box> all_elements(const StoredTensor& left, const StoredTensor& right);
/// Counts the item as unread. Returns kNotKnown.
DiffVerdict count_unread(UnreadItems& unread, const Error& error);
/// True if the finding is an error.
bool is_error(const Finding& finding);

struct DiffSeams {
  /// Decide which item of one side is compared with which item of the other side.
  std::vector<Both<StoredTensor>> (*tensors)(const std::vector<StoredTensor>& left,
                                             const std::vector<StoredTensor>& right) = pair_tensors;
  std::vector<Both<StoredObject>> (*objects)(const std::vector<StoredObject>& left,
                                             const std::vector<StoredObject>& right) = pair_objects;
  /// Returns the verdict on two tensors that follows from their shapes and types alone; kSame if
  /// their elements decide.
  DiffVerdict (*form)(const StoredTensor& left, const StoredTensor& right,
                      const DiffOptions& options) = judge_form;
  /// Returns the boxes of two tensors whose elements are compared.
  std::vector<Box> (*compared)(const StoredTensor& left, const StoredTensor& right) = all_elements;
  /// Returns the differences between two values, as differences() does.
  std::vector<ValueDifference> (*values)(
      const Value& left, const Value& right, std::size_t most,
      const std::function<bool(const ValueDifference&)>& wanted) = differences;
  /// Returns the verdict on an item that can't be read.
  DiffVerdict (*unread)(UnreadItems& unread, const Error& error) = count_unread;
  /// True if a finding about checksums makes its checkpoint damaged.
  bool (*is_damage)(const Finding& finding) = is_error;
};

}  // namespace reprise
