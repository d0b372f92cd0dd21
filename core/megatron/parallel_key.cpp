#include "core/megatron/parallel_key.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/megatron/expert_key.hpp"

namespace reprise {
namespace {

using Cut = ParallelKey::Cut;
using Stage = ParallelKey::Stage;
using Parts = std::vector<std::string_view>;

struct KnownName {
  std::string_view name;
  Cut cut;
};

/// Layers and parameters by their names in Megatron-Core, then in transformers, then in torchtitan.
constexpr std::array kNames = {
    KnownName{"linear_qkv", Cut::kRows},
    KnownName{"linear_q", Cut::kRows},
    KnownName{"linear_kv", Cut::kRows},
    KnownName{"linear_q_proj", Cut::kRows},
    KnownName{"linear_q_up_proj", Cut::kRows},
    KnownName{"linear_kv_up_proj", Cut::kRows},
    KnownName{"linear_fc1", Cut::kRows},
    KnownName{"eh_proj", Cut::kRows},
    KnownName{"word_embeddings", Cut::kRows},
    KnownName{"output_layer", Cut::kRows},
    KnownName{"in_proj", Cut::kRows},
    KnownName{"conv1d", Cut::kRows},
    KnownName{"A_log", Cut::kRows},
    KnownName{"dt_bias", Cut::kRows},
    KnownName{"linear_proj", Cut::kColumns},
    KnownName{"linear_fc2", Cut::kColumns},
    KnownName{"out_proj", Cut::kColumns},
    KnownName{"linear_q_down_proj", Cut::kWhole},
    KnownName{"linear_kv_down_proj", Cut::kWhole},
    KnownName{"position_embeddings", Cut::kWhole},
    KnownName{"router", Cut::kWhole},
    KnownName{"gate_weight", Cut::kWhole},

    KnownName{"q_proj", Cut::kRows},
    KnownName{"k_proj", Cut::kRows},
    KnownName{"v_proj", Cut::kRows},
    KnownName{"gate_proj", Cut::kRows},
    KnownName{"up_proj", Cut::kRows},
    KnownName{"embed_tokens", Cut::kRows},
    KnownName{"lm_head", Cut::kRows},
    KnownName{"o_proj", Cut::kColumns},
    KnownName{"down_proj", Cut::kColumns},

    KnownName{"wq", Cut::kRows},
    KnownName{"wk", Cut::kRows},
    KnownName{"wv", Cut::kRows},
    KnownName{"w1", Cut::kRows},
    KnownName{"w3", Cut::kRows},
    KnownName{"tok_embeddings", Cut::kRows},
    KnownName{"wo", Cut::kColumns},
    KnownName{"w2", Cut::kColumns},
};

constexpr std::array<std::string_view, 3> kEmbeddings = {"embedding", "embed_tokens",
                                                         "tok_embeddings"};
constexpr std::array<std::string_view, 5> kOutputs = {"output_layer", "final_layernorm",
                                                      "final_norm", "lm_head", "mtp"};
/// Modules of torchtitan and transformers with such names are the output, if nothing but the model
/// and what its wrappers and its optimizer add stands before them.
constexpr std::array<std::string_view, 2> kTopOutputs = {"output", "norm"};
constexpr std::array<std::string_view, 10> kModels = {
    "model", "module", "_orig_mod", "optimizer",  "optim",
    "state", "app",    "exp_avg",   "exp_avg_sq", "step"};

bool has(const Parts& parts, std::string_view name) {
  return std::ranges::find(parts, name) != parts.end();
}

template <std::size_t n>
bool has_one_of(const Parts& parts, const std::array<std::string_view, n>& names) {
  return std::ranges::any_of(names, [&](std::string_view name) { return has(parts, name); });
}

/// True if the module that has the key's last part as its own is the output at the model's top.
bool is_top_output(const Parts& parts) {
  const auto top = std::ranges::find_if(parts, [](std::string_view part) {
    return std::ranges::find(kModels, part) == kModels.end();
  });
  return top != parts.end() && top + 1 != parts.end() &&
         std::ranges::find(kTopOutputs, *top) != kTopOutputs.end();
}

/// Returns how the layer of this name cuts its weight, or its bias if `parts` say that it is one.
Cut cut_of(const Parts& parts) {
  if (has(parts, "mixer") && has(parts, "norm")) return Cut::kRows;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->find("norm") != std::string_view::npos || *part == "expert_bias") return Cut::kWhole;
    const auto known = std::ranges::find(kNames, *part, &KnownName::name);
    if (known == kNames.end()) continue;
    const bool bias =
        std::any_of(parts.rbegin(), part, [](auto name) { return name.starts_with("bias"); });
    return bias && known->cut == Cut::kColumns ? Cut::kWhole : known->cut;
  }
  return Cut::kUnknown;
}

/// Reads the part after "layers": a number, or the name of something that each layer has.
void take_layer(const Parts& parts, ParallelKey& parsed) {
  const auto layers = std::ranges::find(parts, "layers");
  if (layers == parts.end() || layers + 1 == parts.end()) return;
  parsed.stage = Stage::kLayer;
  parsed.layer = number_of_part(layers[1]);
  parsed.layers_stacked = !parsed.layer;
}

}  // namespace

ParallelKey parse_parallel_key(std::string_view key) {
  const Parts parts = parts_of_key(key);
  ParallelKey parsed;
  parsed.cut = cut_of(parts);
  parsed.maybe_gated =
      has(parts, "linear_fc1") && !parts.back().ends_with("_w") && !parts.back().ends_with("_v");
  take_layer(parts, parsed);
  const bool top_output = is_top_output(parts);
  if (top_output && parsed.cut == Cut::kUnknown) parsed.cut = Cut::kRows;
  if (top_output || has_one_of(parts, kOutputs)) {
    parsed.stage = Stage::kLast;
  } else if (parsed.stage != Stage::kLayer && has_one_of(parts, kEmbeddings)) {
    parsed.stage = Stage::kFirst;
  }
  const auto expert = parse_expert_key(key);
  parsed.expert = expert.has_value();
  if (expert) parsed.expert_number = expert->number;
  parsed.experts_stacked = parsed.expert && !parsed.expert_number;
  return parsed;
}

}  // namespace reprise
