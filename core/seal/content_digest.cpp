#include "core/seal/content_digest.hpp"

#include <cstddef>
#include <string>
#include <utility>

#include "core/digest/witness_digest.hpp"
#include "core/geometry/dtype.hpp"

namespace reprise {

ContentDigests content_digests(Checkpoint& checkpoint, std::span<const StoredTensor* const> tensors,
                               const SurveyPorts& ports) {
  ContentDigests found;
  std::vector<SurveyItem> items;
  std::vector<std::pair<std::size_t, std::size_t>> places;  // tensor and chunk of each item
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    found.tensors.push_back({0, std::vector<std::uint64_t>(tensors[t]->chunks.size())});
    for (std::size_t c = 0; c < tensors[t]->chunks.size(); ++c) places.emplace_back(t, c);
    add_chunks(*tensors[t], items);
  }
  found.damage = survey(checkpoint, items, ports, [&](std::size_t i) -> TakeElements {
    const StoredTensor& tensor = *items[i].tensor;
    const auto [t, c] = places[i];
    return [key = witness_key(name_of(tensor), name_of(tensor.dtype)), &tensor,
            &sum = found.tensors[t].chunks[c]](const Box& box, ByteSpan elements) {
      sum += witness_digest(key, tensor.dtype, logical_shape(tensor), box, elements);
    };
  });
  for (ContentDigest& tensor : found.tensors) {
    for (const std::uint64_t chunk : tensor.chunks) tensor.digest += chunk;
  }
  return found;
}

}  // namespace reprise
