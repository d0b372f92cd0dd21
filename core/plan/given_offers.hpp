#pragma once
// Stores one rank's offers of tensors whose boxes do not follow from a placement. A job of
// thousands of ranks has millions of such offers, so they are stored in columns to save memory.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/geometry/box.hpp"
#include "core/geometry/dtype.hpp"

namespace reprise {

/// Properties of a tensor on which all ranks that offer its key must agree.
struct TensorForm {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;
  FoldedExtents folded = {};  ///< see StoredTensor

  friend bool operator==(const TensorForm&, const TensorForm&) = default;
};

/// One rank's offer of one tensor.
struct TensorOffer {
  TensorForm form;
  std::vector<Box> boxes;
  std::int32_t replica = 0;
  /// The box that follows from the placement that the leaf claims. Set only if the leaf has a
  /// different box.
  std::optional<Box> denied;
};

class GivenOffers {
 public:
  GivenOffers() = default;
  /// Expects offers sorted by key. Throws EXTENT_MISMATCH with the key if a box and its shape have
  /// different numbers of dimensions.
  explicit GivenOffers(const std::vector<TensorOffer>& offers);
  /// Creates an object without offers; add() adds them. Ranks that offer the same keys share
  /// `forms`.
  explicit GivenOffers(std::shared_ptr<const std::vector<TensorForm>> forms);

  /// Adds the next offer. `corners` contains each box's offset, followed by its extent.
  void add(std::span<const std::int64_t> corners, std::uint32_t boxes, std::int32_t replica,
           const std::optional<Box>& denied);

  std::size_t size() const { return replicas_.size(); }
  bool empty() const { return replicas_.empty(); }
  const std::shared_ptr<const std::vector<TensorForm>>& forms() const { return forms_; }
  const TensorForm& form(std::size_t i) const { return (*forms_)[i]; }
  std::uint32_t boxes(std::size_t i) const { return boxes_[i]; }
  std::span<const std::int64_t> corners(std::size_t i) const {
    return std::span(corners_).subspan(first_[i], first_[i + 1] - first_[i]);
  }
  std::int32_t replica(std::size_t i) const { return replicas_[i]; }
  const Box* denied(std::size_t i) const;
  TensorOffer offer(std::size_t i) const;

  /// Returns a digest of everything but the forms.
  std::uint64_t digest() const;

 private:
  std::shared_ptr<const std::vector<TensorForm>> forms_ =
      std::make_shared<const std::vector<TensorForm>>();
  std::vector<std::int64_t> corners_;
  std::vector<std::size_t> first_ = {0};  ///< where each offer starts in corners_
  std::vector<std::uint32_t> boxes_;
  std::vector<std::int32_t> replicas_;
  std::vector<std::pair<std::size_t, Box>> denied_;  ///< by position of the offer; there are few
};

/// Returns box number `box` of a list of corners with `ndim` dimensions.
Box box_at(std::span<const std::int64_t> corners, std::size_t ndim, std::size_t box);

}  // namespace reprise
