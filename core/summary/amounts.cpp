#include "core/summary/amounts.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "core/megatron/expert_key.hpp"
#include "core/megatron/parameter_role.hpp"
#include "core/summary/optimizer_summary.hpp"

namespace reprise {

std::string_view name_of(TensorUse use) {
  static constexpr std::array<std::string_view, 3> kNames{"weights", "optimizer", "other"};
  return kNames[static_cast<std::size_t>(use)];
}

TensorUse use_of(const StoredTensor& tensor) {
  const std::string_view key = name_of(tensor);
  if (is_of_optimizer(key) || !slot_in_key(key).empty()) return TensorUse::kOptimizer;
  const bool weight = role_of(key, logical_shape(tensor)).kind == ParameterRole::Kind::kWeight;
  return weight ? TensorUse::kWeights : TensorUse::kOther;
}

std::vector<Amount> amounts_of(const Catalog& catalog) {
  std::map<std::pair<TensorUse, DType>, Amount> by_kind;
  for (const StoredTensor& tensor : catalog.tensors) {
    const TensorUse use = use_of(tensor);
    Amount& amount = by_kind[{use, tensor.dtype}];
    amount.use = use;
    amount.dtype = tensor.dtype;
    const auto elements = static_cast<std::uint64_t>(volume(logical_shape(tensor)));
    ++amount.tensors;
    amount.elements += elements;
    amount.bytes += elements * size_of(tensor.dtype);
  }
  std::vector<Amount> amounts;
  for (const auto& [kind, amount] : by_kind) amounts.push_back(amount);
  std::ranges::stable_sort(amounts, [](const Amount& a, const Amount& b) {
    return a.use != b.use ? a.use < b.use : a.bytes > b.bytes;
  });
  return amounts;
}

}  // namespace reprise
