#pragma once
// Counts the tensors of a checkpoint by what they are for.

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/state/catalog.hpp"

namespace reprise {

/// What a tensor is for, by its key.
enum class TensorUse : std::uint8_t {
  kWeights,    ///< what a model has
  kOptimizer,  ///< state of an optimizer, also its own copies of the weights
  kOther,      ///< random states, data loaders, counters, states of layers
};
std::string_view name_of(TensorUse use);
/// A tensor is a weight unless its key says otherwise or it has no dimensions, as counters have.
TensorUse use_of(const StoredTensor& tensor);

/// The tensors of one use and type.
struct Amount {
  TensorUse use = TensorUse::kWeights;
  DType dtype = DType::kFloat32;
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;  ///< of the elements

  friend bool operator==(const Amount&, const Amount&) = default;
};
/// Returns the amounts by use, then the largest first.
std::vector<Amount> amounts_of(const Catalog& catalog);

}  // namespace reprise
