#pragma once
// What a tensor holds in 64 digits, whatever its chunks are: any other program that hashes the same
// elements says the same.

#include <string>

#include "core/adapters/posix/host_device.hpp"
#include "core/engine/checkpoint.hpp"

namespace reprise::driver {

class TensorDigest {
 public:
  /// `checkpoint` outlives it.
  explicit TensorDigest(Checkpoint& checkpoint);

  /// SHA-256, in hexadecimal, of the whole tensor's elements, row-major and little-endian. Read
  /// block by block: memory does not grow with the tensor. Throws what TensorReader throws, and the
  /// first time what require_apart throws. A wrong checksum is in checksums().
  std::string of(const StoredTensor& tensor);
  /// SHA-256 of an object's item as it is stored; its records are counted, too.
  std::string of(const StoredObject& object);
  const ChecksumTally& checksums() const { return checksums_; }

 private:
  Checkpoint& checkpoint_;
  HostDevice device_;
  ChecksumTally checksums_;  ///< of all that was read
  Bytes block_;
  Bytes staging_;
  bool apart_ = false;  ///< no two items share bytes
};

}  // namespace reprise::driver
