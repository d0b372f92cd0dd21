#pragma once
// What a tensor holds in 64 digits, whatever its chunks are: any other program that hashes the same
// elements says the same.

#include <string>

#include "core/adapters/posix/host_device.hpp"
#include "core/engine/checkpoint.hpp"

namespace reprise::cli {

class TensorDigest {
 public:
  /// `checkpoint` outlives it.
  explicit TensorDigest(Checkpoint& checkpoint);

  /// SHA-256, in hexadecimal, of the whole tensor's elements, row-major and little-endian. Read
  /// block by block: memory does not grow with the tensor. Throws what TensorReader throws, and the
  /// first time what require_apart throws.
  std::string of(const StoredTensor& tensor);

 private:
  Checkpoint& checkpoint_;
  HostDevice device_;
  Bytes block_;
  Bytes staging_;
  bool apart_ = false;  ///< no two items share bytes
};

}  // namespace reprise::cli
