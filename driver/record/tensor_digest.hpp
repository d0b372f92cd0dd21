#pragma once
// Computes a digest of a tensor, with 64 hexadecimal digits. It does not depend on the tensor's
// chunks, so any other program that hashes the same elements gets the same digest.

#include <string>

#include "core/adapters/posix/host_device.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/checkpoint/checkpoint.hpp"
#include "core/geometry/element_stats.hpp"

namespace reprise::driver {

class TensorDigest {
 public:
  /// `checkpoint` must outlive this object.
  explicit TensorDigest(Checkpoint& checkpoint);

  /// Returns the SHA-256, in hexadecimal, of the whole tensor's elements, row-major, little-endian.
  /// Reads block by block, so that memory does not grow with the tensor. Throws the errors of
  /// TensorReader, and on the first call those of require_apart. Counts wrong checksums in
  /// checksums().
  std::string of(const StoredTensor& tensor);
  /// Returns the SHA-256 of an object's stored bytes. Counts the object's records in checksums().
  std::string of(const StoredObject& object);
  /// Returns what the tensor's numbers are like. Reads and throws as of() does.
  ElementStats stats_of(const StoredTensor& tensor);
  const ChecksumTally& checksums() const { return checksums_; }
  /// From now on, reports the bytes of tensors to `progress`, which must outlive the calls. Null
  /// ends that.
  void report_to(ByteProgress* progress) { progress_ = progress; }

 private:
  void require_apart_once();

  Checkpoint& checkpoint_;
  HostDevice device_;
  ChecksumTally checksums_;  ///< covers everything that was read
  Bytes block_;
  Bytes staging_;
  ByteProgress* progress_ = nullptr;
  bool apart_ = false;  ///< true once it is known that no two items share bytes
};

}  // namespace reprise::driver
