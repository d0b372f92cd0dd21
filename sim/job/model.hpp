#pragma once
// What a model is to a checkpoint: named parameters with global shapes and the dimensions that
// tensor parallelism splits. Layers are numbered over the whole model.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/geometry/dims.hpp"
#include "core/geometry/placement.hpp"

namespace reprise::sim {

/// Which settings of the optimizer a parameter takes: position in Progress::groups.
enum class ParameterGroup : std::uint8_t {
  kDecayed,  ///< matrices
  kPlain,    ///< vectors and scalars: no weight decay
};
inline constexpr std::size_t kParameterGroups = 2;

struct ParameterSpec {
  std::string key;  ///< "decoder.layers.0.mlp.linear_fc1.weight"
  Dims shape;       ///< of the global tensor
  Placement placement;
  ParameterGroup group = ParameterGroup::kDecayed;
  bool norm = false;  ///< starts near 1 instead of near 0
};

struct ModelSpec {
  std::string name;
  std::vector<ParameterSpec> parameters;  ///< in the order of the model
};

/// Sizes of a dense GPT. The defaults leave uneven shards at every tp and dp above 1.
struct GptSizes {
  std::int64_t layers = 2;
  std::int64_t hidden = 24;
  std::int64_t ffn = 54;
  std::int64_t vocabulary = 131;
};

ModelSpec gpt(std::string name, const GptSizes& sizes);

/// The models that scenarios name: "gpt-tiny".
std::span<const std::string_view> model_names();
/// USAGE with a suggestion if there is none of that name.
ModelSpec model_named(std::string_view name);

/// The same tensor's optimizer state: after the model's own splits, dp splits the first dimension.
/// A tensor without dimensions stays whole.
Placement optimizer_placement(const ParameterSpec& parameter);

}  // namespace reprise::sim
