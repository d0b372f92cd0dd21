#include "core/summary/amounts.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/megatron/expert_key.hpp"
#include "core/summary/optimizer_summary.hpp"

namespace reprise {
namespace {

using namespace std::string_view_literals;

/// Parts of keys of what is neither a model's nor an optimizer's.
constexpr std::array kOfOthers{"rng"sv,          "rng_state"sv,     "rng_states"sv,
                               "dataloader"sv,   "data_loader"sv,   "train_dataloader"sv,
                               "lr_scheduler"sv, "scheduler"sv,     "train_state"sv,
                               "_extra_state"sv, "extra_state"sv,   "grad_scaler"sv,
                               "scaler"sv,       "cuda_rng_state"sv};

bool is_of_others(std::string_view key) {
  const auto parts = parts_of_key(key);
  return std::ranges::any_of(parts, [](std::string_view part) {
    return std::ranges::find(kOfOthers, part) != kOfOthers.end();
  });
}

}  // namespace

std::string_view name_of(TensorUse use) {
  static constexpr std::array kNames{"weights"sv, "optimizer"sv, "other"sv};
  return kNames[static_cast<std::size_t>(use)];
}

TensorUse use_of(const StoredTensor& tensor) {
  const std::string_view key = name_of(tensor);
  if (is_of_optimizer(key) || !slot_in_key(key).empty()) return TensorUse::kOptimizer;
  const bool counter = logical_shape(tensor).empty();
  return counter || is_of_others(key) ? TensorUse::kOther : TensorUse::kWeights;
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
