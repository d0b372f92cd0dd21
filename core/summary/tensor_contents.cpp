#include "core/summary/tensor_contents.hpp"

#include <cstddef>

#include "core/digest/witness_digest.hpp"
#include "core/geometry/dtype.hpp"

namespace reprise {
namespace {

/// Takes the elements of an item in order.
struct ItemContent {
  std::size_t tensor = 0;
  std::uint64_t key = 0;  ///< identifies the tensor in its digest
  std::uint64_t digest = 0;
  Sha256 sha256 = {};
  ElementStats stats = {};
};

}  // namespace

TensorContents tensor_contents(Checkpoint& checkpoint, std::span<const StoredTensor* const> tensors,
                               const ContentsWanted& wanted, const SurveyPorts& ports) {
  std::vector<SurveyItem> items;
  std::vector<ItemContent> of_items;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const StoredTensor& tensor = *tensors[t];
    if (wanted.sha256 || wanted.stats || tensor.chunks.empty()) {
      items.push_back({&tensor, {Box::whole(logical_shape(tensor))}});
    } else {
      add_chunks(tensor, items);
    }
    of_items.resize(items.size(), {t, witness_key(name_of(tensor), name_of(tensor.dtype))});
  }
  TensorContents found{std::vector<TensorContent>(tensors.size()), {}};
  found.damage = survey(checkpoint, items, ports, [&](std::size_t i) -> TakeElements {
    const StoredTensor& tensor = *items[i].tensor;
    return [&tensor, &item = of_items[i], &wanted](const Box& box, ByteSpan elements) {
      if (wanted.digest) {
        item.digest += witness_digest(item.key, tensor.dtype, logical_shape(tensor), box, elements);
      }
      if (wanted.sha256) item.sha256.update(elements);
      if (wanted.stats) item.stats.add(tensor.dtype, elements);
    };
  });
  for (const ItemContent& item : of_items) {
    TensorContent& tensor = found.tensors[item.tensor];
    tensor.digest += item.digest;
    if (wanted.sha256) tensor.sha256 = item.sha256.digest();
    if (wanted.stats) tensor.stats = item.stats;
  }
  return found;
}

}  // namespace reprise
