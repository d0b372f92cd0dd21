#pragma once
// Queues the content digest of elements in GPU memory, which reads 16 bytes at once.

#include <cstdint>

#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/geometry/element_digest.hpp"
#include "core/geometry/element_map.hpp"

namespace reprise::sim {

/// Adds the digest of the elements to `sum`, which is in device memory: what element_digest() gives
/// for each, with the places `a` of the map. `Word` is as for ElementDigest.
template <class Word>
void queue_digest(CudaStreamRef stream, const ElementMap& over, const ElementDigest<Word>& digest,
                  std::uint64_t* sum);

}  // namespace reprise::sim
