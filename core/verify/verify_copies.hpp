#pragma once
// Finds tensors that hold the same bytes. Safetensors has no way to say that weights are tied, and
// no checksums by which a tensor in the place of another could be noticed.

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "core/base/hash.hpp"
#include "core/checkpoint/finding.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// Takes the elements of tensors while they are read. The catalog must outlive this object.
class EqualTensors {
 public:
  /// Takes the next elements of a tensor's chunk. `at` is where they begin, and how many bytes the
  /// chunk has.
  void add(const StoredTensor& tensor, ByteRange at, ByteSpan elements);

  /// Adds what another one took, which must have taken whole chunks.
  void add(const EqualTensors& more);

  /// Reports tensors that hold the same bytes, in a note. Passes over tensors that can be alike
  /// without a reason: those of fewer than two dimensions, of few elements, or of one value
  /// throughout. A tensor in several pieces is passed over, too.
  Findings findings() const;

 private:
  using Alike = std::tuple<DType, Dims, std::uint64_t>;

  std::optional<Hasher> hasher_;  ///< of the chunk whose bytes come
  Bytes first_;                   ///< its first element
  bool constant_ = true;
  std::map<Alike, std::vector<const StoredTensor*>> tensors_;
};

}  // namespace reprise
