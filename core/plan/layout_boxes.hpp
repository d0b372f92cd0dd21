#pragma once
// The boxes of stored tensors that the ranks of a job ask for, if nothing is known of the job but
// its layout: the names of tensors say what a stage has and what tensor parallelism cuts
// (core/megatron/parallel_key.hpp). Pure.
//
//   tensor [layers 2, rows 24, columns 8], cut by rows, tp 2, pp 2:
//     tp 0, pp 0 asks for [0:1, 0:12, 0:8]     tp 0, pp 1 for [1:2, 0:12, 0:8]
//     tp 1, pp 0 asks for [0:1, 12:24, 0:8]    tp 1, pp 1 for [1:2, 12:24, 0:8]

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/megatron/parallel_key.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// The numbers of parts into which a layout cuts tensors.
struct LayoutParts {
  std::int32_t tp = 1;
  std::int32_t pp = 1;
  std::int32_t ep = 1;
  std::int32_t etp = 1;            ///< tensor parallelism of experts
  std::int32_t shards = 1;         ///< ranks that share one copy, as FSDP has it
  std::int32_t expert_shards = 1;  ///< the same of experts
  /// Number of parts, of equal size, into which the layers must divide: the stages, and the virtual
  /// ones; 0 if stages have any number of layers.
  std::int32_t layer_parts = 0;
  /// Returns the stage of a layer among `layers` layers.
  std::function<std::int32_t(std::int64_t layer, std::int64_t layers)> stage_of;
};

/// A rank's coordinates along those.
struct LayoutPlace {
  std::int32_t tp = 0;
  std::int32_t pp = 0;
  std::int32_t ep = 0;
  std::int32_t etp = 0;
  std::int32_t shard = 0;
  std::int32_t expert_shard = 0;

  friend auto operator<=>(const LayoutPlace&, const LayoutPlace&) = default;
};

/// What is known of the program that saved, and will load.
struct SavedBy {
  /// True for Megatron-Core, whose ranks ask for whole layers and experts, one by one, and of whose
  /// weights replicas have copies. Otherwise dimension 0 is cut over the shards, as FSDP2 does.
  bool megatron = false;
  /// Tensor parallelism of the job that saved, which its chunks may show, and its stages. Buckets
  /// fit no other layout.
  std::int32_t tp = 1;
  std::int32_t pp = 1;
};

class LayoutBoxes {
 public:
  /// The catalog must outlive the object. Throws LAYOUT_MISMATCH if a tensor can't be cut so: the
  /// rows or columns of a layer, the layers, or a mixture's experts, do not divide. Throws LIMIT
  /// for a tensor of more layers or experts than any model has.
  LayoutBoxes(const Catalog& catalog, LayoutParts parts, const SavedBy& saved_by);

  /// Returns the boxes of a tensor, by its index in the catalog, that a rank at this place asks
  /// for. They do not overlap, and none is empty.
  std::vector<Box> of(std::uint32_t tensor, const LayoutPlace& place) const;

  /// Returns the place with 0 for coordinates on which nothing here depends: those of experts if
  /// there are none, and those of shards if replicas ask for the same. Ranks of which it is equal
  /// ask for the same boxes.
  LayoutPlace as_asked(LayoutPlace place) const;

  /// Returns the keys of tensors of which nothing says whether tensor parallelism cuts them. They
  /// are taken as whole on each rank. Empty if the layout has no tensor parallelism.
  std::vector<std::string> untold() const;
  /// Returns the keys of tensors that no rank of this layout can ask for, since they are cut as the
  /// buffers of another layout were (dp_reshardable).
  std::vector<std::string> unfit() const;
  /// Returns the keys of tensors of which each rank asks for a part that only the job knows: ranges
  /// of flattened parameters. They are taken as whole.
  std::vector<std::string> flattened() const;

 private:
  struct TensorCut {
    ParallelKey key;
    std::int64_t layers = 0;
    std::int64_t experts = 0;
    std::optional<std::size_t> dim;  ///< cut by tensor parallelism
    bool gated = false;
    std::optional<std::int64_t> group;  ///< of a bucket
    bool unfit = false;
  };

  TensorCut cut_of(const StoredTensor& tensor) const;
  void find_dim(const StoredTensor& tensor, TensorCut& cut) const;
  std::optional<std::size_t> dim_of_chunks(const StoredTensor& tensor, std::size_t lead) const;
  bool is_gated(const StoredTensor& tensor, std::size_t dim) const;
  void check(const StoredTensor& tensor, const TensorCut& cut) const;
  bool has(const TensorCut& cut, const LayoutPlace& place) const;
  std::vector<Box> slices(const TensorCut& cut, const Box& whole, const LayoutPlace& place) const;
  std::vector<std::string> keys_where(const std::function<bool(std::uint32_t)>& wanted) const;

  const Catalog& catalog_;
  LayoutParts parts_;
  SavedBy saved_by_;
  std::int64_t layers_ = 0;  ///< of which keys have the numbers
  std::int64_t groups_ = 0;  ///< of buckets
  bool experts_ = false;
  bool tied_ = false;  ///< true if the embedding is the output, too
  std::vector<TensorCut> cuts_;
};

}  // namespace reprise
