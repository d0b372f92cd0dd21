#pragma once
// Tells from the keys of a training's tensors what each is: a weight, a moment of the optimizer, a
// step counter. Pure.
//
//   layers.0.weight                              weight
//   optimizer.state.layers.0.weight.exp_avg      moment of layers.0.weight, torch's order
//   optimizer.state.exp_avg.layers.0.weight      moment of layers.0.weight, Megatron's order
//   optimizer.state.layers.0.weight.step         step counter of layers.0.weight
//   train_state.step                             step counter of the training

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/tensor.hpp"

namespace reprise {

struct ParameterRole {
  enum class Kind : std::uint8_t { kWeight, kMoment, kMaster, kStep, kOther };
  Kind kind = Kind::kWeight;
  /// The parameter to which a moment, a master copy or a step counter belongs, without what stands
  /// before it in the optimizer's keys; empty for others.
  std::string parameter;

  friend bool operator==(const ParameterRole&, const ParameterRole&) = default;
};

/// kOther is what an optimizer keeps besides, such as buckets, and what is_of_job(). Nothing is
/// known of what it should do.
ParameterRole role_of(std::string_view key);
/// The same, but a tensor without dimensions is no weight: it is a counter, or a setting.
ParameterRole role_of(std::string_view key, const Dims& shape);

/// True if the key is neither a model's nor an optimizer's: of random states, schedulers, data
/// loaders.
bool is_of_job(std::string_view key);

/// True for a buffer of Megatron's distributed optimizer (dp_reshardable), which holds parameters
/// with padding between them that nothing initializes.
bool is_of_bucket(std::string_view key);

/// The keys of what an optimizer keeps of a weight.
struct OptimizerKeys {
  std::vector<std::string> moments = {};
  std::vector<std::string> masters = {};
  std::string step = {};  ///< empty if the weight has no counter of its own

  friend bool operator==(const OptimizerKeys&, const OptimizerKeys&) = default;
};

/// Returns each weight with its optimizer's keys. A key may begin with a path that ends in '/';
/// weights and moments belong together if it is the same. Otherwise their names may have further
/// parts before them on either side. Of several weights that fit, it is the one that is no average
/// of weights (`ema.w`), or else the one of `model`. Moments that fit no weight, or still several,
/// are left out, and appended to `unassigned`.
std::map<std::string, OptimizerKeys> parameters_of(std::span<const std::string> keys,
                                                   std::vector<std::string>* unassigned = nullptr);

}  // namespace reprise
