#pragma once
// Defines a model from a checkpoint's point of view: named parameters with global shapes, their
// splits under model parallelism, and their places in the model. Layers and experts are numbered
// over the whole model.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/geometry/placement.hpp"
#include "reprise/tensor.hpp"
#include "sim/job/groups/layout.hpp"
#include "sim/job/model/partition_rules.hpp"

namespace reprise::sim {

/// The group of optimizer settings that a parameter uses; an index in OptimizerSettings::groups.
enum class ParameterGroup : std::uint8_t {
  kDecayed,  ///< matrices
  kPlain,    ///< vectors and scalars: no weight decay
};

/// A dimension that is made of equal components. Each component is split separately, so each rank
/// holds a part of every component. Examples are the gate and up halves of a SwiGLU projection.
struct Fused {
  std::int64_t components = 1;
  std::size_t dim = 0;
};

/// One expert of a layer, by its number in the whole model.
struct OwnExpert {
  std::int64_t number = 0;
  std::int64_t of = 1;
};

/// Place of a parameter in the model; determines the parameter's pipeline stage.
struct Place {
  enum class At : std::uint8_t { kFirst, kLayer, kLast } at = At::kFirst;
  std::int64_t layer = 0;  ///< set for kLayer

  static Place first() { return {At::kFirst}; }
  static Place last() { return {At::kLast}; }
  static Place of_layer(std::int64_t layer) { return {At::kLayer, layer}; }
};

struct ParameterSpec {
  std::string key;       ///< such as "decoder.layers.0.mlp.linear_fc1.weight"
  std::string full_key;  ///< key with the module's prefix
  Dims shape;            ///< shape of the global tensor
  /// Number of unpadded rows if dimension 0 is padded to a multiple of `rows_multiple` x tp, as in
  /// vocabularies. The other rows are zeros and are not trained. 0 means that there is no padding.
  std::int64_t live_rows = 0;
  std::int64_t rows_multiple = 0;
  /// True if the parameter's layer builds its part of a checkpoint itself, from the groups passed
  /// to it. Examples are the patch embedding of a vision backbone and the mixer of a state-space
  /// layer.
  bool leaf_layer = false;
  Placement placement;
  ParameterGroup group = ParameterGroup::kDecayed;
  bool norm = false;  ///< true if elements start near 1 instead of near 0
  MeshKind mesh = MeshKind::kDense;
  Fused fused;
  /// Set if the tensor belongs to a single expert: the expert's number and the number of experts.
  /// Only one EP rank has the tensor: the one that would hold the expert if the experts were
  /// stacked in one tensor.
  std::optional<OwnExpert> expert;
  /// Places of the parameter. There are several if several stages hold copies of it, as for an
  /// embedding.
  std::vector<Place> places = {Place::first()};
};

struct ModelSpec {
  std::string name;
  std::vector<ParameterSpec> parameters;  ///< in model order
  std::int64_t layers = 0;

  bool has_experts() const;
};

/// Returns the number of elements without padding.
std::int64_t live_elements(const ParameterSpec& spec);

/// Returns the least that all ranks of a job with this layout hold together: 2 bytes of weights per
/// element for each copy, and 12 bytes of optimizer state per element once.
std::uint64_t least_state_bytes(const ModelSpec& model, const Layout& layout);

/// Returns the model as this layout needs it: padded for its tp, and with `prefix` before all full
/// keys.
ModelSpec fitted(ModelSpec model, const Layout& layout, const std::string& prefix);

/// Sizes of a dense GPT. With the default sizes, shards are uneven at every tp and dp above 1.
struct GptSizes {
  std::int64_t layers = 2;
  std::int64_t hidden = 24;
  std::int64_t ffn = 54;
  std::int64_t vocabulary = 131;
  std::int64_t key_value = 0;  ///< hidden size of keys and of values; 0 if the same as `hidden`
  std::int64_t padded_to = 0;  ///< padding of the vocabulary: see ParameterSpec::rows_multiple
  /// Number of leading layers that have a state-space mixer instead of attention.
  std::int64_t mixer_layers = 0;
};

ModelSpec gpt(std::string name, const GptSizes& sizes);

/// Sizes of an encoder for patches of images or spectra. Its output is projected to the hidden size
/// of a language model. It has no vocabulary.
struct EncoderSizes {
  std::int64_t layers = 4;
  std::int64_t hidden = 10;
  std::int64_t ffn = 18;
  std::int64_t patch = 27;  ///< numbers per patch
  std::int64_t positions = 7;
  std::int64_t projected = 12;
};

ModelSpec encoder(std::string name, const EncoderSizes& sizes);

/// Attention with narrow projections of queries, keys and values (MLA).
struct LatentAttention {
  std::int64_t heads = 0;
  std::int64_t query_rank = 0;      ///< width of the narrow part of queries
  std::int64_t key_value_rank = 0;  ///< width of the narrow part of keys and values
  std::int64_t head = 0;    ///< width of a head's values, and of its keys without the rotary part
  std::int64_t rotary = 0;  ///< width of the rotary part that keys and queries have in addition
};

/// Sizes of a mixture of experts. The first `dense_layers` layers are like those of a GPT. The
/// others have a router, experts in one stacked tensor for each SwiGLU projection, and a shared
/// expert.
struct MoeSizes {
  std::int64_t layers = 4;
  std::int64_t dense_layers = 1;
  std::int64_t hidden = 12;
  std::int64_t ffn = 14;
  std::int64_t experts = 6;
  std::int64_t expert_ffn = 7;
  std::int64_t shared_ffn = 10;  ///< width of the shared expert; 0 if there is none
  /// Size of the vocabulary. 512 rows over 30 ranks give 28 full shards, one of 8 rows and an empty
  /// one.
  std::int64_t vocabulary = 512;
  std::int64_t key_value = 0;             ///< same meaning as in GptSizes
  std::int64_t streams = 3;               ///< number of hyper-connections; 0 if there are none
  std::optional<LatentAttention> latent;  ///< replaces plain attention
  std::int64_t mtp_layers = 0;  ///< layers of multi-token prediction; if there are any, the last
                                ///< stage has an embedding, too
  std::int64_t padded_to = 0;   ///< padding of the vocabulary: see ParameterSpec::rows_multiple
  /// True if each expert has a separate tensor, such as "...linear_fc1.weight3".
  bool own_tensors = false;
  bool mtp_own_tensors = false;  ///< like own_tensors, but only for experts of prediction layers
};

ModelSpec moe(std::string name, const MoeSizes& sizes);

/// Returns the model with that name, which is made once per process. Throws USAGE with a suggestion
/// if there is none. Threads may call it at the same time.
/// For scenarios: "gpt-tiny", "moe-tiny", "moe-tiny-mtp", "moe-tiny-experts" (a tensor per expert),
/// "moe-twelve" (12 layers of 12 such experts).
/// For modules: "vision-tiny", "audio-tiny", "language-tiny", "hybrid-tiny", "language-moe". If one
/// of these has a vocabulary, the vocabulary is padded for the module's tp.
/// "every-kind" has every kind of parameter, in small dimensions.
/// For plans, real models: "llama3-8b", "llama3-405b", "gpt3-175b", "mixtral-8x7b", "deepseek-v3".
const ModelSpec& model_named(std::string_view name);

/// Throws LAYOUT_MISMATCH if the layout's number of layers differs from the model's, or if the
/// layout has expert parallelism and the model has no experts.
void check_fits(const ModelSpec& model, const Layout& layout);

/// Returns the EP rank that holds the tensors of `expert`.
std::int32_t expert_rank_of(const OwnExpert& expert, std::int32_t ep, ChunkRule slice = ceil_chunk);

/// Returns the stages that hold a parameter, ascending.
std::vector<std::int32_t> stages_of(const ParameterSpec& parameter, const ModelSpec& model,
                                    const Layout& layout);

}  // namespace reprise::sim
