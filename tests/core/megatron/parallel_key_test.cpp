#include "core/megatron/parallel_key.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace reprise {
namespace {

using Cut = ParallelKey::Cut;
using Stage = ParallelKey::Stage;

TEST(ParallelKey, names_say_the_stage_and_what_is_cut) {
  struct Row {
    const char* key;
    Stage stage;
    Cut cut;
    std::size_t lead;
  };
  const std::vector<Row> rows = {
      {"embedding.word_embeddings.weight", Stage::kFirst, Cut::kRows, 0},
      {"embedding.position_embeddings.weight", Stage::kFirst, Cut::kWhole, 0},
      {"decoder.layers.self_attention.linear_qkv.weight", Stage::kLayer, Cut::kRows, 1},
      {"decoder.layers.self_attention.linear_qkv.bias", Stage::kLayer, Cut::kRows, 1},
      {"decoder.layers.self_attention.linear_qkv.layer_norm_weight", Stage::kLayer, Cut::kWhole, 1},
      {"decoder.layers.self_attention.linear_proj.weight", Stage::kLayer, Cut::kColumns, 1},
      {"decoder.layers.self_attention.linear_proj.bias", Stage::kLayer, Cut::kWhole, 1},
      {"decoder.layers.self_attention.q_layernorm.weight", Stage::kLayer, Cut::kWhole, 1},
      {"decoder.layers.3.mlp.linear_fc2.weight", Stage::kLayer, Cut::kColumns, 0},
      {"decoder.layers.mlp.router.weight", Stage::kLayer, Cut::kWhole, 1},
      {"decoder.layers.mlp.experts.experts.linear_fc1.weight", Stage::kLayer, Cut::kRows, 2},
      {"decoder.layers.3.mlp.experts.linear_fc2.weight7", Stage::kLayer, Cut::kColumns, 0},
      {"decoder.layers.mixer.norm.weight", Stage::kLayer, Cut::kRows, 1},
      {"decoder.layers.mixer.out_proj.weight", Stage::kLayer, Cut::kColumns, 1},
      {"decoder.final_layernorm.weight", Stage::kLast, Cut::kWhole, 0},
      {"output_layer.weight", Stage::kLast, Cut::kRows, 0},
      {"mtp.layers.0.eh_proj.weight", Stage::kLast, Cut::kRows, 0},
      {"optimizer.state.exp_avg.decoder.layers.mlp.linear_fc2.weight", Stage::kLayer, Cut::kColumns,
       1},
      {"chained_1.optimizer.state.param.decoder.layers.mlp.experts.experts.linear_fc2.weight",
       Stage::kLayer, Cut::kColumns, 2},
      {"model.layers.1.self_attn.q_proj.weight", Stage::kLayer, Cut::kRows, 0},
      {"model.layers.1.mlp.down_proj.weight", Stage::kLayer, Cut::kColumns, 0},
      {"layers.4.attention.wo.weight", Stage::kLayer, Cut::kColumns, 0},
      {"optimizer.state.layers.4.feed_forward.w1.weight.exp_avg", Stage::kLayer, Cut::kRows, 0},
      {"decoder.layers.adapter.up.weight", Stage::kLayer, Cut::kUnknown, 1},
      {"output.weight", Stage::kLast, Cut::kRows, 0},
      {"norm.weight", Stage::kLast, Cut::kWhole, 0},
      {"model.norm.weight", Stage::kLast, Cut::kWhole, 0},
      {"lm_head.weight", Stage::kLast, Cut::kRows, 0},
      {"app.optimizer.state.model.norm.weight.exp_avg", Stage::kLast, Cut::kWhole, 0},
      {"optimizer.state.output.weight.exp_avg", Stage::kLast, Cut::kRows, 0},
      {"encoder.output.dense.weight", Stage::kEvery, Cut::kUnknown, 0},
      {"layers.0.output.weight", Stage::kLayer, Cut::kUnknown, 0},
      {"model.fc.weight", Stage::kEvery, Cut::kUnknown, 0},
  };
  for (const Row& row : rows) {
    const ParallelKey key = parse_parallel_key(row.key);
    EXPECT_EQ(key.stage, row.stage) << row.key;
    EXPECT_EQ(key.cut, row.cut) << row.key;
    EXPECT_EQ(key.lead(), row.lead) << row.key;
  }
}

TEST(ParallelKey, numbers_of_layers_and_experts) {
  const auto stacked = parse_parallel_key("decoder.layers.mlp.experts.experts.linear_fc1.weight");
  EXPECT_TRUE(stacked.layers_stacked);
  EXPECT_TRUE(stacked.experts_stacked);
  EXPECT_TRUE(stacked.maybe_gated);
  const auto numbered = parse_parallel_key("decoder.layers.12.mlp.experts.linear_fc1.weight7");
  EXPECT_EQ(numbered.layer, 12);
  EXPECT_EQ(numbered.expert_number, 7);
  EXPECT_TRUE(numbered.maybe_gated);
  const auto half = parse_parallel_key("decoder.layers.mlp.linear_fc1.weight_w");
  EXPECT_FALSE(half.maybe_gated) << "the halves have keys of their own";
  EXPECT_FALSE(parse_parallel_key("decoder.layers.mlp.shared_experts.linear_fc1.weight").expert);
}

}  // namespace
}  // namespace reprise
