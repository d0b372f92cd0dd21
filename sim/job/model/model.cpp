#include "sim/job/model/model.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>

#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

constexpr std::array<std::string_view, 16> kModelNames = {
    "gpt-tiny",   "moe-tiny",      "moe-tiny-mtp", "moe-tiny-experts", "moe-twelve", "vision-tiny",
    "audio-tiny", "language-tiny", "hybrid-tiny",  "language-moe",     "llama3-8b",  "llama3-405b",
    "gpt3-175b",  "mixtral-8x7b",  "deepseek-v3",  "every-kind"};

/// Adds parameters to a model, at the places that the last call of at() set.
class Builder {
 public:
  explicit Builder(ModelSpec& model) : model_(model) {}

  Builder& at(std::vector<Place> places, std::string prefix = "") {
    places_ = std::move(places);
    prefix_ = std::move(prefix);
    leaf_layer_ = false;
    return *this;
  }
  Builder& layer(std::int64_t number) {
    return at({Place::of_layer(number)}, "decoder.layers." + std::to_string(number) + ".");
  }
  void matrix(const std::string& name, const Dims& shape, Fused fused = {}) {
    add(name, shape, ParameterGroup::kDecayed, false).fused = fused;
  }
  /// Adds a matrix of a single expert.
  void expert_matrix(const std::string& name, const OwnExpert& expert, const Dims& shape,
                     Fused fused = {}) {
    matrix(name + std::to_string(expert.number), shape, fused);
    model_.parameters.back().expert = expert;
  }
  void vector(const std::string& name, std::int64_t length) {
    add(name, {length}, ParameterGroup::kPlain, false);
  }
  void norm(const std::string& name, std::int64_t length) {
    add(name, {length}, ParameterGroup::kPlain, true);
  }
  void scalar(const std::string& name) { add(name, {}, ParameterGroup::kPlain, true); }
  /// Adds a matrix with one row per entry of the vocabulary.
  void words(const std::string& name, std::int64_t vocabulary, std::int64_t hidden,
             std::int64_t padded_to) {
    add(name, {vocabulary, hidden}, ParameterGroup::kDecayed, false).rows_multiple = padded_to;
  }
  /// Until the next call of at(), all added parameters belong to a leaf layer (see
  /// ParameterSpec::leaf_layer).
  Builder& leaf_layer() {
    leaf_layer_ = true;
    return *this;
  }

 private:
  ParameterSpec& add(const std::string& name, const Dims& shape, ParameterGroup group, bool norm) {
    const std::string key = prefix_ + name;
    Partition partition = partition_of(key);
    model_.parameters.push_back({.key = key,
                                 .full_key = key,
                                 .shape = shape,
                                 .leaf_layer = leaf_layer_,
                                 .placement = std::move(partition.placement),
                                 .group = group,
                                 .norm = norm,
                                 .mesh = partition.mesh,
                                 .places = places_});
    return model_.parameters.back();
  }

  ModelSpec& model_;
  std::vector<Place> places_;
  std::string prefix_;
  bool leaf_layer_ = false;
};

void add_attention(Builder& build, std::int64_t hidden, std::int64_t key_value) {
  const std::int64_t rows = hidden + 2 * (key_value == 0 ? hidden : key_value);
  build.norm("self_attention.linear_qkv.layer_norm_weight", hidden);
  build.matrix("self_attention.linear_qkv.weight", {rows, hidden});
  build.matrix("self_attention.linear_proj.weight", {hidden, hidden});
}

void add_latent_attention(Builder& build, std::int64_t hidden, const LatentAttention& sizes) {
  const std::int64_t queries = sizes.heads * (sizes.head + sizes.rotary);
  build.norm("input_layernorm.weight", hidden);
  build.matrix("self_attention.linear_q_down_proj.weight", {sizes.query_rank, hidden});
  build.norm("self_attention.linear_q_up_proj.layer_norm_weight", sizes.query_rank);
  build.matrix("self_attention.linear_q_up_proj.weight", {queries, sizes.query_rank});
  build.matrix("self_attention.linear_kv_down_proj.weight",
               {sizes.key_value_rank + sizes.rotary, hidden});
  build.norm("self_attention.linear_kv_up_proj.layer_norm_weight", sizes.key_value_rank);
  build.matrix("self_attention.linear_kv_up_proj.weight",
               {2 * sizes.heads * sizes.head, sizes.key_value_rank});
  build.matrix("self_attention.linear_proj.weight", {hidden, sizes.heads * sizes.head});
}

/// Adds a state-space layer. Its inner size is twice the hidden size and is divided into heads of
/// 4.
void add_mixer(Builder& build, std::int64_t hidden) {
  constexpr std::int64_t kHead = 4;
  constexpr std::int64_t kKernel = 4;
  const std::int64_t inner = 2 * hidden;
  const std::int64_t heads = inner / kHead;
  build.leaf_layer();
  build.norm("mixer.in_proj.layer_norm_weight", hidden);
  build.matrix("mixer.in_proj.weight", {2 * inner + heads, hidden});
  build.matrix("mixer.conv1d.weight", {inner, 1, kKernel});
  build.vector("mixer.conv1d.bias", inner);
  build.vector("mixer.dt_bias", heads);
  build.vector("mixer.A_log", heads);
  build.vector("mixer.D", heads);
  build.norm("mixer.norm.weight", inner);
  build.matrix("mixer.out_proj.weight", {hidden, inner});
}

void add_gpt_mlp(Builder& build, std::int64_t hidden, std::int64_t ffn) {
  build.norm("mlp.linear_fc1.layer_norm_weight", hidden);
  build.matrix("mlp.linear_fc1.weight", {ffn, hidden});
  build.vector("mlp.linear_fc1.bias", ffn);
  build.matrix("mlp.linear_fc2.weight", {hidden, ffn});
}

void add_swiglu(Builder& build, const std::string& name, std::int64_t hidden, std::int64_t ffn) {
  build.matrix(name + ".linear_fc1.weight", {2 * ffn, hidden}, {2, 0});
  build.matrix(name + ".linear_fc2.weight", {hidden, ffn});
}

void add_own_experts(Builder& build, const MoeSizes& sizes) {
  for (std::int64_t number = 0; number < sizes.experts; ++number) {
    build.expert_matrix("mlp.experts.linear_fc1.weight", {number, sizes.experts},
                        {2 * sizes.expert_ffn, sizes.hidden}, {2, 0});
  }
  for (std::int64_t number = 0; number < sizes.experts; ++number) {
    build.expert_matrix("mlp.experts.linear_fc2.weight", {number, sizes.experts},
                        {sizes.hidden, sizes.expert_ffn});
  }
}

void add_experts(Builder& build, const MoeSizes& sizes) {
  build.norm("pre_mlp_layernorm.weight", sizes.hidden);
  build.matrix("mlp.router.weight", {sizes.experts, sizes.hidden});
  build.vector("mlp.router.expert_bias", sizes.experts);
  if (sizes.own_tensors) {
    add_own_experts(build, sizes);
  } else {
    build.matrix("mlp.experts.linear_fc1.weight",
                 {sizes.experts, 2 * sizes.expert_ffn, sizes.hidden}, {2, 1});
    build.matrix("mlp.experts.linear_fc2.weight", {sizes.experts, sizes.hidden, sizes.expert_ffn});
  }
  if (sizes.shared_ffn > 0) add_swiglu(build, "mlp.shared_experts", sizes.hidden, sizes.shared_ffn);
}

void add_moe_layer(Builder& build, bool dense, const MoeSizes& sizes) {
  if (sizes.latent) {
    add_latent_attention(build, sizes.hidden, *sizes.latent);
  } else {
    add_attention(build, sizes.hidden, sizes.key_value);
  }
  if (sizes.streams > 0) {
    build.matrix("hyper_connection.beta", {sizes.streams, sizes.streams + 1});
    build.scalar("hyper_connection.scale");
  }
  if (dense) {
    build.norm("pre_mlp_layernorm.weight", sizes.hidden);
    add_swiglu(build, "mlp", sizes.hidden, sizes.ffn);
  } else {
    add_experts(build, sizes);
  }
}

void add_prediction(Builder& build, std::int64_t number, const MoeSizes& sizes) {
  build.at({Place::last()}, "mtp.layers." + std::to_string(number) + ".");
  build.norm("enorm.weight", sizes.hidden);
  build.matrix("eh_proj.weight", {sizes.hidden, 2 * sizes.hidden});
  build.at({Place::last()}, "mtp.layers." + std::to_string(number) + ".transformer_layer.");
  MoeSizes own = sizes;
  own.own_tensors = sizes.own_tensors || sizes.mtp_own_tensors;
  add_moe_layer(build, false, own);
}

constexpr GptSizes kLanguage = {
    .layers = 8, .hidden = 12, .ffn = 26, .vocabulary = 61, .padded_to = 5};
constexpr GptSizes kHybrid = {
    .layers = 4, .hidden = 12, .ffn = 26, .vocabulary = 61, .padded_to = 5, .mixer_layers = 3};
constexpr MoeSizes kLanguageOfExperts = {.layers = 20,
                                         .dense_layers = 2,
                                         .hidden = 8,
                                         .ffn = 10,
                                         .experts = 4,
                                         .expert_ffn = 6,
                                         .shared_ffn = 0,
                                         .vocabulary = 61,
                                         .streams = 0,
                                         .padded_to = 5};
/// Twelve layers of twelve experts: as text, the tenth of each comes before the second.
constexpr MoeSizes kTwelve = {.layers = 12,
                              .dense_layers = 1,
                              .hidden = 12,
                              .ffn = 14,
                              .experts = 12,
                              .expert_ffn = 7,
                              .shared_ffn = 0,
                              .vocabulary = 61,
                              .streams = 0,
                              .own_tensors = true};
/// A model that is small in every dimension. Meshes of 2 to 8 ranks split some dimensions unevenly
/// and leave some shards of other dimensions empty.
constexpr MoeSizes kEveryKind = {.layers = 2,
                                 .dense_layers = 1,
                                 .hidden = 6,
                                 .ffn = 7,
                                 .experts = 3,
                                 .expert_ffn = 3,
                                 .shared_ffn = 0,
                                 .vocabulary = 13,
                                 .streams = 2,
                                 .mtp_layers = 1,
                                 .padded_to = 5,
                                 .mtp_own_tensors = true};
/// Without experts, MoeSizes describes dense models with SwiGLU layers, such as Llama.
constexpr MoeSizes kLlama3 = {.layers = 32,
                              .dense_layers = 32,
                              .hidden = 4096,
                              .ffn = 14336,
                              .experts = 0,
                              .vocabulary = 128256,
                              .key_value = 1024,
                              .streams = 0};
constexpr MoeSizes kLlama3Large = {.layers = 126,
                                   .dense_layers = 126,
                                   .hidden = 16384,
                                   .ffn = 53248,
                                   .experts = 0,
                                   .vocabulary = 128256,
                                   .key_value = 1024,
                                   .streams = 0};
constexpr MoeSizes kDeepSeekV3 = {
    .layers = 61,
    .dense_layers = 3,
    .hidden = 7168,
    .ffn = 18432,
    .experts = 256,
    .expert_ffn = 2048,
    .shared_ffn = 2048,
    .vocabulary = 129280,
    .streams = 0,
    .latent =
        LatentAttention{
            .heads = 128, .query_rank = 1536, .key_value_rank = 512, .head = 128, .rotary = 64},
    .mtp_layers = 1};
constexpr MoeSizes kMixtral = {.layers = 32,
                               .dense_layers = 0,
                               .hidden = 4096,
                               .experts = 8,
                               .expert_ffn = 14336,
                               .shared_ffn = 0,
                               .vocabulary = 32000,
                               .key_value = 1024,
                               .streams = 0};

}  // namespace

bool ModelSpec::has_experts() const {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const auto& spec) { return spec.mesh == MeshKind::kExpert; });
}

ModelSpec gpt(std::string name, const GptSizes& sizes) {
  ModelSpec model{std::move(name), {}, sizes.layers};
  Builder build(model);
  build.at({Place::first()})
      .words("embedding.word_embeddings.weight", sizes.vocabulary, sizes.hidden, sizes.padded_to);
  for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
    build.layer(layer);
    if (layer < sizes.mixer_layers) {
      add_mixer(build, sizes.hidden);
      build.layer(layer);
    } else {
      add_attention(build, sizes.hidden, sizes.key_value);
    }
    add_gpt_mlp(build, sizes.hidden, sizes.ffn);
  }
  build.at({Place::last()}).norm("decoder.final_layernorm.weight", sizes.hidden);
  build.words("output_layer.weight", sizes.vocabulary, sizes.hidden, sizes.padded_to);
  build.scalar("output_layer.logit_scale");
  return model;
}

ModelSpec encoder(std::string name, const EncoderSizes& sizes) {
  ModelSpec model{std::move(name), {}, sizes.layers};
  Builder build(model);
  build.at({Place::first()}).leaf_layer();
  build.matrix("embedder.weight", {sizes.hidden, sizes.patch});
  build.matrix("position_embeddings", {sizes.positions, sizes.hidden});
  build.vector("class_token", sizes.hidden);
  for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
    build.layer(layer);
    add_attention(build, sizes.hidden, 0);
    add_gpt_mlp(build, sizes.hidden, sizes.ffn);
  }
  build.at({Place::last()}).norm("decoder.final_layernorm.weight", sizes.hidden);
  build.matrix("projection.linear_fc1.weight", {sizes.ffn, sizes.hidden});
  build.matrix("projection.linear_fc2.weight", {sizes.projected, sizes.ffn});
  return model;
}

std::int64_t live_elements(const ParameterSpec& spec) {
  const std::int64_t all = volume(spec.shape);
  return spec.live_rows == 0 ? all : all / spec.shape[0] * spec.live_rows;
}

std::uint64_t least_state_bytes(const ModelSpec& model, const Layout& layout) {
  constexpr std::uint64_t kWeight = 2;
  constexpr std::uint64_t kOptimizer = 12;
  const auto world = static_cast<std::uint64_t>(layout.world_size());
  const auto pp = static_cast<std::uint64_t>(layout.pp);
  const auto dense_copies = world / (pp * static_cast<std::uint64_t>(layout.tp));
  const auto expert_copies = world / (pp * static_cast<std::uint64_t>(layout.expert_tp()) *
                                      static_cast<std::uint64_t>(layout.ep));
  std::uint64_t bytes = 0;
  for (const ParameterSpec& spec : model.parameters) {
    const auto copies = spec.mesh == MeshKind::kDense ? dense_copies : expert_copies;
    bytes += static_cast<std::uint64_t>(volume(spec.shape)) * (kWeight * copies + kOptimizer);
  }
  return bytes;
}

ModelSpec fitted(ModelSpec model, const Layout& layout, const std::string& prefix) {
  for (auto& spec : model.parameters) {
    spec.full_key = prefix + spec.key;
    if (spec.rows_multiple == 0) continue;
    const std::int64_t multiple = spec.rows_multiple * layout.tp;
    spec.live_rows = spec.shape[0];
    spec.shape[0] = (spec.live_rows + multiple - 1) / multiple * multiple;
  }
  return model;
}

ModelSpec moe(std::string name, const MoeSizes& sizes) {
  ModelSpec model{std::move(name), {}, sizes.layers};
  Builder build(model);
  std::vector<Place> embedding = {Place::first()};
  if (sizes.mtp_layers > 0) embedding.push_back(Place::last());
  build.at(embedding).words("embedding.word_embeddings.weight", sizes.vocabulary, sizes.hidden,
                            sizes.padded_to);
  for (std::int64_t layer = 0; layer < sizes.layers; ++layer) {
    build.layer(layer);
    add_moe_layer(build, layer < sizes.dense_layers, sizes);
  }
  build.at({Place::last()}).norm("decoder.final_layernorm.weight", sizes.hidden);
  if (sizes.streams > 0) build.matrix("hc_head.weight", {sizes.streams, sizes.hidden});
  build.words("head.weight", sizes.vocabulary, sizes.hidden, sizes.padded_to);
  for (std::int64_t layer = 0; layer < sizes.mtp_layers; ++layer) {
    add_prediction(build, layer, sizes);
  }
  return model;
}

namespace {

/// Makes the model with that name. Throws USAGE with a suggestion if there is none.
ModelSpec make_model(std::string_view name) {
  if (name == "gpt-tiny") return gpt("gpt-tiny", {});
  if (name == "moe-tiny") return moe("moe-tiny", {});
  if (name == "moe-tiny-mtp") return moe("moe-tiny-mtp", {.mtp_layers = 1});
  if (name == "moe-tiny-experts") return moe("moe-tiny-experts", {.own_tensors = true});
  if (name == "moe-twelve") return moe("moe-twelve", kTwelve);
  if (name == "vision-tiny") return encoder("vision-tiny", {});
  if (name == "audio-tiny") return encoder("audio-tiny", {2, 6, 10, 9, 5, 12});
  if (name == "language-tiny") return gpt("language-tiny", kLanguage);
  if (name == "hybrid-tiny") return gpt("hybrid-tiny", kHybrid);
  if (name == "language-moe") return moe("language-moe", kLanguageOfExperts);
  if (name == "every-kind") return moe("every-kind", kEveryKind);
  if (name == "llama3-8b") return moe("llama3-8b", kLlama3);
  if (name == "llama3-405b") return moe("llama3-405b", kLlama3Large);
  if (name == "deepseek-v3") return moe("deepseek-v3", kDeepSeekV3);
  if (name == "gpt3-175b") return gpt("gpt3-175b", {96, 12288, 49152, 50257});
  if (name == "mixtral-8x7b") return moe("mixtral-8x7b", kMixtral);
  const std::string near = closest(name, kModelNames);
  throw Error(Code::kUsage, "there is no model '" + std::string(name) + "'" +
                                (near.empty() ? "." : "; did you mean '" + near + "'?") +
                                " Known: " + join(kModelNames, ", "));
}

}  // namespace

const ModelSpec& model_named(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, ModelSpec, std::less<>> made;
  const std::lock_guard lock(mutex);
  const auto known = made.find(name);
  if (known != made.end()) return known->second;
  return made.try_emplace(std::string(name), make_model(name)).first->second;
}

void check_fits(const ModelSpec& model, const Layout& layout) {
  if (layout.ep > 1 && !model.has_experts()) {
    throw Error(Code::kLayoutMismatch,
                "model " + model.name + " has no experts: use ep 1, not " + to_string(layout));
  }
  const auto& layers = layout.stage_layers;
  const std::int64_t dealt = std::accumulate(layers.begin(), layers.end(), std::int64_t{0});
  if (layers.empty() || dealt == model.layers) return;
  throw Error(Code::kLayoutMismatch, "the stages of " + to_string(layout) + " take " +
                                         std::to_string(dealt) + " layers and model " + model.name +
                                         " has " + std::to_string(model.layers));
}

std::int32_t expert_rank_of(const OwnExpert& expert, std::int32_t ep, ChunkRule slice) {
  std::int32_t rank = 0;
  while (rank + 1 < ep && slice(expert.of, ep, rank).end <= expert.number) ++rank;
  return rank;
}

std::vector<std::int32_t> stages_of(const ParameterSpec& parameter, const ModelSpec& model,
                                    const Layout& layout) {
  std::vector<std::int32_t> stages;
  for (const Place& place : parameter.places) {
    stages.push_back(place.at == Place::At::kFirst  ? 0
                     : place.at == Place::At::kLast ? layout.pp - 1
                                                    : stage_of(place.layer, model.layers, layout));
  }
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  return stages;
}

}  // namespace reprise::sim
