#include "driver/record/tensor_digest.hpp"

#include "core/base/sha256.hpp"
#include "core/checkpoint/extents.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/geometry/blocks.hpp"
#include "core/verify/verify_health.hpp"

namespace reprise::driver {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{4} << 20U;

}  // namespace

TensorDigest::TensorDigest(Checkpoint& checkpoint)
    : checkpoint_(checkpoint), device_("host", 0), block_(kBlockBytes), staging_(kBlockBytes) {}

void TensorDigest::require_apart_once() {
  if (!apart_) require_apart(checkpoint_);
  apart_ = true;
}

std::string TensorDigest::of(const StoredTensor& tensor) {
  require_apart_once();
  const ReaderResources resources{checkpoint_, device_, staging_, &checksums_};
  TensorReader reader(resources, tensor);
  const auto width = size_of(tensor.dtype);
  Sha256 hash;
  for_each_block(logical_shape(tensor), static_cast<std::int64_t>(block_.size() / width),
                 [&](const Box& box) {
                   reader.read(box, block_.data());
                   const auto bytes = static_cast<std::size_t>(box.elements()) * width;
                   hash.update({block_.data(), bytes});
                   if (progress_ != nullptr) progress_->go(tensor.key, bytes);
                 });
  return hex(hash.digest());
}

ElementStats TensorDigest::stats_of(const StoredTensor& tensor) {
  require_apart_once();
  return reprise::stats_of({checkpoint_, device_, staging_, &checksums_}, tensor,
                           [&](std::uint64_t bytes) {
                             if (progress_ != nullptr) progress_->go(tensor.key, bytes);
                           });
}

std::string TensorDigest::of(const StoredObject& object) {
  const auto item = checkpoint_.slice(object.key, object.file, object.range);
  checksums_.add(*item, object.key);
  return hex(sha256_of(checkpoint_.object_bytes(object)));
}

}  // namespace reprise::driver
