#include "driver/record/tensor_digest.hpp"

#include "core/base/sha256.hpp"
#include "core/checkpoint/extents.hpp"
#include "core/checkpoint/tensor_reader.hpp"
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
  Sha256 hash;
  TensorReader(resources, tensor)
      .read(Box::whole(logical_shape(tensor)), block_, [&](const Box& /*box*/, ByteSpan elements) {
        hash.update(elements);
        if (progress_ != nullptr) progress_->go(tensor.key, elements.size());
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
