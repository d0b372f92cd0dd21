#pragma once
// What a model is to a checkpoint: named parameters with global shapes, how model parallelism
// splits them, and where in the model they stand. Layers and experts are numbered over the whole
// model.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/geometry/placement.hpp"
#include "reprise/tensor.hpp"
#include "sim/job/layout.hpp"
#include "sim/job/partition_rules.hpp"

namespace reprise::sim {

/// Which settings of the optimizer a parameter takes: position in Progress::groups.
enum class ParameterGroup : std::uint8_t {
  kDecayed,  ///< matrices
  kPlain,    ///< vectors and scalars: no weight decay
};
inline constexpr std::size_t kParameterGroups = 2;

/// Equal parts of one dimension that are cut each by itself, as the gate and up halves of a SwiGLU
/// projection: each rank holds its part of every component.
struct Fused {
  std::int64_t components = 1;
  std::size_t dim = 0;
};

/// One expert of a layer, by its number in the whole model.
struct OwnExpert {
  std::int64_t number = 0;
  std::int64_t of = 1;
};

/// Where in the model a parameter stands, which decides its pipeline stage.
struct Place {
  enum class At : std::uint8_t { kFirst, kLayer, kLast } at = At::kFirst;
  std::int64_t layer = 0;  ///< of kLayer

  static Place first() { return {At::kFirst}; }
  static Place last() { return {At::kLast}; }
  static Place of_layer(std::int64_t layer) { return {At::kLayer, layer}; }
};

struct ParameterSpec {
  std::string key;       ///< "decoder.layers.0.mlp.linear_fc1.weight"
  std::string full_key;  ///< with the module's prefix
  Dims shape;            ///< of the global tensor
  /// Rows that mean something where dimension 0 is padded to a multiple of `rows_multiple` x tp,
  /// as vocabularies are: the rest are zeros and are not trained. 0: all of them.
  std::int64_t live_rows = 0;
  std::int64_t rows_multiple = 0;
  /// Belongs to a layer that makes its own part of a checkpoint out of the groups it is called
  /// with, as the patch embedding of a vision backbone or the mixer of a state-space layer.
  bool leaf_layer = false;
  Placement placement;
  ParameterGroup group = ParameterGroup::kDecayed;
  bool norm = false;  ///< starts near 1 instead of near 0
  MeshKind mesh = MeshKind::kDense;
  Fused fused;
  /// Of a tensor that is one expert's own: which of how many. Its EP rank holds it, by the rule
  /// that cuts stacked experts, and no other knows of it.
  std::optional<OwnExpert> expert;
  /// One, or several that hold copies (an embedding that two stages use).
  std::vector<Place> places = {Place::first()};
};

struct ModelSpec {
  std::string name;
  std::vector<ParameterSpec> parameters;  ///< in the order of the model
  std::int64_t layers = 0;

  bool has_experts() const;
};

/// Elements, row-major, that mean something.
std::int64_t live_elements(const ParameterSpec& spec);

/// The model as this layout holds it: padded for its tp, with `prefix` before all full keys.
ModelSpec fitted(ModelSpec model, const Layout& layout, const std::string& prefix);

/// Sizes of a dense GPT. The defaults leave uneven shards at every tp and dp above 1.
struct GptSizes {
  std::int64_t layers = 2;
  std::int64_t hidden = 24;
  std::int64_t ffn = 54;
  std::int64_t vocabulary = 131;
  std::int64_t key_value = 0;     ///< hidden size of keys and of values; 0: as hidden
  std::int64_t padded_to = 0;     ///< the vocabulary: see ParameterSpec::rows_multiple
  std::int64_t mixer_layers = 0;  ///< the first so many have a state-space mixer for attention
};

ModelSpec gpt(std::string name, const GptSizes& sizes);

/// Sizes of an encoder of patches (of images, of spectra) whose output is projected into the hidden
/// size of a language model. It has no vocabulary.
struct EncoderSizes {
  std::int64_t layers = 4;
  std::int64_t hidden = 10;
  std::int64_t ffn = 18;
  std::int64_t patch = 27;  ///< numbers in a patch
  std::int64_t positions = 7;
  std::int64_t projected = 12;
};

ModelSpec encoder(std::string name, const EncoderSizes& sizes);

/// Attention whose queries, keys and values go through narrow projections (MLA).
struct LatentAttention {
  std::int64_t heads = 0;
  std::int64_t query_rank = 0;      ///< width of the queries' narrow part
  std::int64_t key_value_rank = 0;  ///< and of keys and values together
  std::int64_t head = 0;            ///< a head's width: of its values, and of keys without position
  std::int64_t rotary = 0;          ///< what keys and queries have beside it for the position
};

/// Sizes of a mixture of experts: the first `dense_layers` are as in a GPT, the others have a
/// router, experts in one stacked tensor each for their SwiGLU projections, and a shared expert.
struct MoeSizes {
  std::int64_t layers = 4;
  std::int64_t dense_layers = 1;
  std::int64_t hidden = 12;
  std::int64_t ffn = 14;
  std::int64_t experts = 6;
  std::int64_t expert_ffn = 7;
  std::int64_t shared_ffn = 10;           ///< of the shared expert; 0: there is none
  std::int64_t vocabulary = 512;          ///< over 30 ranks: 28 full shards, one of 8, one empty
  std::int64_t key_value = 0;             ///< as above
  std::int64_t streams = 3;               ///< of the hyper-connections; 0: none
  std::optional<LatentAttention> latent;  ///< in place of plain attention
  std::int64_t mtp_layers = 0;  ///< multi-token prediction, on the last stage with an embedding
  std::int64_t padded_to = 0;   ///< the vocabulary: see ParameterSpec::rows_multiple
  bool own_tensors = false;     ///< a tensor for each expert, "...linear_fc1.weight3", none stacked
};

ModelSpec moe(std::string name, const MoeSizes& sizes);

/// The models that scenarios name: "gpt-tiny", "moe-tiny", "moe-tiny-mtp", "moe-tiny-experts" with
/// a tensor for each expert; as modules
/// "vision-tiny", "audio-tiny", "language-tiny", "hybrid-tiny" and "language-moe", which are padded
/// for their tp where they have a vocabulary; and, for plans, real ones: "llama3-8b",
/// "llama3-405b", "gpt3-175b", "mixtral-8x7b", "deepseek-v3".
std::span<const std::string_view> model_names();
/// USAGE with a suggestion if there is none of that name.
ModelSpec model_named(std::string_view name);

/// LAYOUT_MISMATCH if the layout deals out another number of layers than the model has, or has
/// experts to place and the model none.
void check_fits(const ModelSpec& model, const Layout& layout);

/// The EP rank that holds a tensor of that expert.
std::int32_t expert_rank_of(const OwnExpert& expert, std::int32_t ep, ChunkRule slice = ceil_chunk);

/// The stages that hold a parameter, ascending.
std::vector<std::int32_t> stages_of(const ParameterSpec& parameter, const ModelSpec& model,
                                    const Layout& layout);

}  // namespace reprise::sim
