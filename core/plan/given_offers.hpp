#pragma once
// One rank's offers of tensors whose boxes do not follow from a placement, stored in columns
// because a job of thousands of ranks has millions of them.

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

/// Properties on which all ranks that offer a key must agree.
struct TensorForm {
  std::string key;
  DType dtype = DType::kFloat32;
  Dims shape;

  friend bool operator==(const TensorForm&, const TensorForm&) = default;
};

/// A single offer.
struct TensorOffer {
  TensorForm form;
  std::vector<Box> boxes;
  std::int32_t replica = 0;
  std::optional<Box> denied;  ///< box from a placement the leaf claims but does not match
};

class GivenOffers {
 public:
  GivenOffers() = default;
  /// Expects offers sorted by key. Throws EXTENT_MISMATCH, naming the key, for a box whose number
  /// of dimensions is not that of its shape.
  explicit GivenOffers(const std::vector<TensorOffer>& offers);
  /// Starts empty; fill with add(). Ranks that offer the same keys share `forms`.
  explicit GivenOffers(std::shared_ptr<const std::vector<TensorForm>> forms);

  /// Adds the next offer's boxes, one after another: of each the offset, then the extent.
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

  /// Returns a digest of everything except the forms.
  std::uint64_t digest() const;

 private:
  std::shared_ptr<const std::vector<TensorForm>> forms_ =
      std::make_shared<const std::vector<TensorForm>>();
  std::vector<std::int64_t> corners_;
  std::vector<std::size_t> first_ = {0};  ///< offers' starts in corners_
  std::vector<std::uint32_t> boxes_;
  std::vector<std::int32_t> replicas_;
  std::vector<std::pair<std::size_t, Box>> denied_;  ///< by offer; there are few
};

/// Returns the `box`-th box from corners of `ndim` dimensions.
Box box_at(std::span<const std::int64_t> corners, std::size_t ndim, std::size_t box);

}  // namespace reprise
