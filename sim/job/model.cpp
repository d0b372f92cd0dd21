#include "sim/job/model.hpp"

#include <array>

#include "core/base/error.hpp"
#include "core/base/print.hpp"

namespace reprise::sim {
namespace {

constexpr std::array<std::string_view, 1> kModelNames = {"gpt-tiny"};

Placement split_by_tp(std::size_t dim) { return Placement({{"tp", dim}}); }

ParameterSpec column(std::string key, Dims shape) {
  return {std::move(key), shape, split_by_tp(0), ParameterGroup::kDecayed};
}
ParameterSpec row(std::string key, Dims shape) {
  return {std::move(key), shape, split_by_tp(1), ParameterGroup::kDecayed};
}
ParameterSpec norm(std::string key, std::int64_t hidden) {
  return {std::move(key), {hidden}, Placement(), ParameterGroup::kPlain, true};
}

void add_layer(std::vector<ParameterSpec>& out, std::int64_t number, const GptSizes& sizes) {
  const std::string at = "decoder.layers." + std::to_string(number) + ".";
  const std::int64_t hidden = sizes.hidden;
  out.push_back(norm(at + "self_attention.linear_qkv.layer_norm_weight", hidden));
  out.push_back(column(at + "self_attention.linear_qkv.weight", {3 * hidden, hidden}));
  out.push_back(row(at + "self_attention.linear_proj.weight", {hidden, hidden}));
  out.push_back(norm(at + "mlp.linear_fc1.layer_norm_weight", hidden));
  out.push_back(column(at + "mlp.linear_fc1.weight", {sizes.ffn, hidden}));
  out.push_back({at + "mlp.linear_fc1.bias", {sizes.ffn}, split_by_tp(0), ParameterGroup::kPlain});
  out.push_back(row(at + "mlp.linear_fc2.weight", {hidden, sizes.ffn}));
}

}  // namespace

ModelSpec gpt(std::string name, const GptSizes& sizes) {
  ModelSpec model{std::move(name), {}};
  auto& parameters = model.parameters;
  parameters.push_back(
      column("embedding.word_embeddings.weight", {sizes.vocabulary, sizes.hidden}));
  for (std::int64_t layer = 0; layer < sizes.layers; ++layer) add_layer(parameters, layer, sizes);
  parameters.push_back(norm("decoder.final_layernorm.weight", sizes.hidden));
  parameters.push_back(column("output_layer.weight", {sizes.vocabulary, sizes.hidden}));
  parameters.push_back({"output_layer.logit_scale", {}, Placement(), ParameterGroup::kPlain, true});
  return model;
}

std::span<const std::string_view> model_names() { return kModelNames; }

ModelSpec model_named(std::string_view name) {
  if (name == "gpt-tiny") return gpt("gpt-tiny", {});
  const std::string near = closest(name, kModelNames);
  throw Error(Code::kUsage, "there is no model '" + std::string(name) + "'" +
                                (near.empty() ? "." : "; did you mean '" + near + "'?") +
                                " Known: " + join(kModelNames, ", "));
}

Placement optimizer_placement(const ParameterSpec& parameter) {
  auto splits = parameter.placement.splits();
  if (!parameter.shape.empty()) splits.push_back({"dp", 0});
  return Placement(std::move(splits));
}

}  // namespace reprise::sim
