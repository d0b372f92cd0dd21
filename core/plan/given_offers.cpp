#include "core/plan/given_offers.hpp"

#include <algorithm>

#include "core/base/hash.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

std::shared_ptr<const std::vector<TensorForm>> forms_of(const std::vector<TensorOffer>& offers) {
  std::vector<TensorForm> forms;
  forms.reserve(offers.size());
  for (const TensorOffer& offer : offers) forms.push_back(offer.form);
  return std::make_shared<const std::vector<TensorForm>>(std::move(forms));
}

template <class T>
std::uint64_t digest_of(const std::vector<T>& values) {
  return mix64(values.size(), hash_of(std::as_bytes(std::span(values))));
}

}  // namespace

GivenOffers::GivenOffers(const std::vector<TensorOffer>& offers) : GivenOffers(forms_of(offers)) {
  std::vector<std::int64_t> corners;
  for (const TensorOffer& offer : offers) {
    corners.clear();
    for (const Box& box : offer.boxes) {
      const std::size_t ndim = offer.form.shape.size();
      if (box.offset.size() != ndim || box.extent.size() != ndim) {
        throw Error(Code::kExtentMismatch,
                    "a box with a different number of dimensions than shape " +
                        to_string(offer.form.shape) + " is offered",
                    {.key = offer.form.key});
      }
      corners.insert(corners.end(), box.offset.begin(), box.offset.end());
      corners.insert(corners.end(), box.extent.begin(), box.extent.end());
    }
    add(corners, static_cast<std::uint32_t>(offer.boxes.size()), offer.replica, offer.denied);
  }
}

GivenOffers::GivenOffers(std::shared_ptr<const std::vector<TensorForm>> forms)
    : forms_(std::move(forms)) {
  first_.reserve(forms_->size() + 1);
  boxes_.reserve(forms_->size());
  replicas_.reserve(forms_->size());
}

void GivenOffers::add(std::span<const std::int64_t> corners, std::uint32_t boxes,
                      std::int32_t replica, const std::optional<Box>& denied) {
  if (denied) denied_.emplace_back(size(), *denied);
  corners_.insert(corners_.end(), corners.begin(), corners.end());
  first_.push_back(corners_.size());
  boxes_.push_back(boxes);
  replicas_.push_back(replica);
}

const Box* GivenOffers::denied(std::size_t i) const {
  const auto found = std::lower_bound(denied_.begin(), denied_.end(), i,
                                      [](const auto& at, std::size_t n) { return at.first < n; });
  return found == denied_.end() || found->first != i ? nullptr : &found->second;
}

TensorOffer GivenOffers::offer(std::size_t i) const {
  TensorOffer offer{.form = form(i), .boxes = {}, .replica = replica(i), .denied = {}};
  for (std::size_t b = 0; b < boxes(i); ++b) {
    offer.boxes.push_back(box_at(corners(i), offer.form.shape.size(), b));
  }
  if (const Box* box = denied(i)) offer.denied = *box;
  return offer;
}

std::uint64_t GivenOffers::digest() const {
  std::uint64_t hash = mix64(mix64(digest_of(corners_), digest_of(first_)),
                             mix64(digest_of(boxes_), digest_of(replicas_)));
  for (const auto& [offer, box] : denied_) {
    hash = mix64(hash, offer);
    for (const Dims* dims : {&box.offset, &box.extent}) {
      for (const std::int64_t number : *dims)
        hash = mix64(hash, static_cast<std::uint64_t>(number));
    }
  }
  return hash;
}

Box box_at(std::span<const std::int64_t> corners, std::size_t ndim, std::size_t box) {
  const auto at = corners.subspan(2 * ndim * box, 2 * ndim);
  return {Dims(at.first(ndim)), Dims(at.last(ndim))};
}

}  // namespace reprise
