#pragma once
// Compares the elements of pairs of tensors for one thread, whole tensors or parts of large ones.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/checkpoint/piece_reader.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/diff/diff.hpp"
#include "core/diff/diff_sides.hpp"
#include "core/diff/rank_pairs.hpp"
#include "core/geometry/box.hpp"
#include "core/geometry/compare.hpp"
#include "core/geometry/element_change.hpp"
#include "reprise/device.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// Puts together the checksums of pairs of tensors that several threads read. One tensor may be in
/// several pairs.
struct SharedSides {
  SharedSides(const DiffSides& sides, Device& device)
      : left(sides.left, device), right(sides.right, device) {}

  SharedChecksums left;
  SharedChecksums right;
};

/// Two tensors whose elements are compared.
struct ComparedPair {
  ComparedPair(const Both<StoredTensor>& both, std::size_t index) : tensors(both), number(index) {}

  Both<StoredTensor> tensors;
  std::size_t number;  ///< among all pairs
  /// True once a difference was found. From then on, parts are measured as they are compared.
  std::atomic<bool> differs = false;

  const StoredTensor& left() const { return *tensors.left; }
  const StoredTensor& right() const { return *tensors.right; }
  /// Returns the size of an element in bytes, on the side where it is larger.
  std::size_t width() const;
};

/// Says what was found in a tensor, or in a part of it.
struct PartDiff {
  struct First {
    Dims index;
    std::string left;
    std::string right;
  };
  Comparison comparison;
  std::optional<ElementChange> change;  ///< empty if nothing differs, unless it was measured early
  std::unique_ptr<First> first;
  std::unique_ptr<Error> unread;  ///< why it can't be read, or not all of it
};

class TensorDiffer {
 public:
  /// The arguments must outlive this object.
  TensorDiffer(const DiffSides& sides, Device& device, const DiffOptions& options,
               SharedSides& shared, ByteProgress& progress);

  /// Compares two tensors, or a part of them, which is a box. If something can't be read, nothing
  /// more is compared, but the rest of both sides is read for its checksums. Throws an Error that
  /// does not concern the tensor alone.
  PartDiff compare(ComparedPair& pair, const std::optional<Box>& part);
  /// Measures a part in which nothing differs. Says so in it if it can't be read any more.
  void measure_unchanged(const ComparedPair& pair, const Box& part, PartDiff& found);

  /// Adds the checksums that were compared.
  void add_to(DiffSides& sides) const {
    sides.left_checksums.add(left_checksums_);
    sides.right_checksums.add(right_checksums_);
  }
  void require_in_place() const {
    left_side_.require_files_in_place();
    right_side_.require_files_in_place();
  }

 private:
  using Readers = std::array<std::unique_ptr<TensorReader>, 2>;  ///< null if it has no valid form

  void compare_blocks(ComparedPair& pair, const std::vector<Box>& boxes, const Readers& readers,
                      PartDiff& found);
  void add_unchanged_first(const ComparedPair& pair, const std::vector<Box>& boxes);
  void judge(ComparedPair& pair, const Box& block, PartDiff& found);
  void measure(const ComparedPair& pair, const Box& block, bool same, PartDiff& found);
  /// Returns the number of elements that are read at a time.
  std::int64_t block_of(const ComparedPair& pair) const {
    return static_cast<std::int64_t>(buffer_left_.size() / pair.width());
  }

  Checkpoint left_side_;
  Checkpoint right_side_;
  const DiffSeams& seams_;
  bool checksums_;  ///< true if they are compared
  ChecksumTally left_checksums_;
  ChecksumTally right_checksums_;
  Bytes staging_;
  ReaderResources left_;
  ReaderResources right_;
  Bytes buffer_left_;
  Bytes buffer_right_;
  SharedSides& shared_;
  ByteProgress& progress_;
  std::uint64_t left_to_do_ = 0;  ///< bytes of this part that were not compared yet
  bool at_once_ = false;          ///< true if this part is measured although nothing may differ
  std::uint64_t unchanged_first_ = 0;  ///< blocks before the first that differs, not yet measured
  ElementChange before_first_;         ///< of such blocks
};

}  // namespace reprise
