// Tests the signs that parts of a checkpoint, each whole, do not belong together.

#include "core/verify/verify_signs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace reprise {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Catalog tensors(const std::vector<std::pair<std::string, Dims>>& all) {
  Catalog catalog{.files = {"f"}};
  for (const auto& [key, shape] : all) catalog.tensors.push_back({.key = key, .shape = shape});
  return catalog;
}

Catalog keys(const std::vector<std::string>& all) {
  std::vector<std::pair<std::string, Dims>> with_shape;
  for (const auto& key : all) with_shape.emplace_back(key, Dims{2});
  return tensors(with_shape);
}

Value common_of(std::int64_t pp, std::int64_t tp) {
  return Dict{
      {"args", Dict{{"pipeline_model_parallel_size", pp}, {"tensor_model_parallel_size", tp}}},
      {"iteration", std::int64_t{10}}};
}

Catalog random_states(const std::string& suffix) {
  Catalog catalog{.files = {"f"}};
  catalog.objects.push_back({"rng_state/shard_" + suffix, 0, {0, 0}});
  return catalog;
}

TEST(CheckRandomGrid, IsPipelineBeforeTensorAsArgsSays) {
  EXPECT_THAT(check_random_grid(common_of(2, 1), random_states("0.0_2.1")), IsEmpty());
  EXPECT_THAT(check_random_grid(common_of(2, 4), random_states("0.0.1_2.4.3")), IsEmpty())
      << "with experts it is cut by data rank, too";
  EXPECT_THAT(check_random_grid(common_of(2, 4), random_states("0.0")), IsEmpty());
  EXPECT_THAT(check_random_grid(Value(Dict{}), random_states("0.0_1.2")), IsEmpty()) << "no args";
  for (const auto& [pp, tp, shard] : std::vector<std::tuple<int, int, std::string>>{
           {2, 1, "0.0_1.2"}, {1, 2, "0.0_2.1"}, {2, 2, "0.0_1.2"}, {1, 1, "0.0_1.2"}}) {
    const Findings found = check_random_grid(common_of(pp, tp), random_states(shard));
    ASSERT_EQ(found.size(), 1U) << shard;
    EXPECT_EQ(found[0].severity, Severity::kWarning);
    EXPECT_EQ(found[0].key, "rng_state");
  }
}

TEST(CheckIteration, IsTheOneOfTheDirectory) {
  EXPECT_THAT(check_iteration(common_of(1, 1), Step{10}), IsEmpty());
  EXPECT_THAT(check_iteration(common_of(1, 1), std::nullopt), IsEmpty());
  EXPECT_THAT(check_iteration(Value(Dict{}), Step{10}), IsEmpty());
  const Findings found = check_iteration(common_of(1, 1), Step{30});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_THAT(found[0].message, AllOf(HasSubstr("10"), HasSubstr("30")));
}

TEST(CheckMoments, ATensorHasBothOrNeither) {
  EXPECT_THAT(check_moments(keys(
                  {"w", "frozen", "optimizer.state.exp_avg.w", "optimizer.state.exp_avg_sq.w"})),
              IsEmpty());
  EXPECT_THAT(check_moments(keys({"w", "v", "optim.state.w.exp_avg", "optim.state.v.exp_avg"})),
              IsEmpty())
      << "an optimizer without second moments";
  for (const std::string lost : {"optim.state.a.w.exp_avg", "optim.state.a.w.exp_avg_sq",
                                 "optimizer.state.exp_avg.b.w", "optimizer.state.exp_avg_sq.b.w"}) {
    std::vector<std::string> all = {
        "optim.state.a.w.exp_avg",     "optim.state.a.w.exp_avg_sq",
        "optim.state.a.v.exp_avg",     "optim.state.a.v.exp_avg_sq",
        "optimizer.state.exp_avg.b.w", "optimizer.state.exp_avg_sq.b.w",
    };
    std::erase(all, lost);
    const Findings found = check_moments(keys(all));
    ASSERT_EQ(found.size(), 1U) << lost;
    EXPECT_THAT(found[0].message, HasSubstr(lost.find("a.w") != std::string::npos ? "a.w" : "b.w"));
  }
}

TEST(CheckExperts, EachThatTheRouterChoosesIsStored) {
  const auto model = [](const std::string& router, const std::string& experts,
                        const std::vector<int>& numbers, const std::string& rest) {
    std::vector<std::pair<std::string, Dims>> all = {{router, {4, 8}}};
    for (const int number : numbers) {
      all.emplace_back(experts + std::to_string(number) + rest, Dims{8, 2});
    }
    return tensors(all);
  };
  const std::vector<std::array<std::string, 3>> forms = {
      {"decoder.layers.0.mlp.router.weight", "decoder.layers.0.mlp.experts.local_experts.",
       ".linear_fc1.weight"},
      {"decoder.layers.0.mlp.router.weight", "decoder.layers.0.mlp.experts.experts.",
       ".linear_fc1.weight"},
      {"model.layers.0.mlp.gate.weight", "model.layers.0.mlp.experts.", ".up_proj.weight"},
      {"decoder.layers.0.mlp.router.weight", "decoder.layers.0.mlp.experts.linear_fc1.weight", ""},
      {"decoder.layers.0.mlp.router.weight", "decoder.layers.0.mlp.experts.linear_fc1.weight",
       "_w"},
      {"decoder.layers.0.mlp.router.weight", "decoder.layers.0.mlp.experts.experts.linear_fc2.bias",
       ""},
  };
  for (const auto& [router, experts, rest] : forms) {
    EXPECT_THAT(check_experts(model(router, experts, {0, 1, 2, 3}, rest)), IsEmpty()) << experts;
    EXPECT_THAT(check_experts(model(router, experts, {}, rest)), IsEmpty()) << "stacked experts";
    for (const auto& numbers : std::vector<std::vector<int>>{{0, 1}, {2, 3}, {0, 1, 3}}) {
      const Findings found = check_experts(model(router, experts, numbers, rest));
      ASSERT_EQ(found.size(), 1U) << experts;
      EXPECT_EQ(found[0].key, router);
    }
  }
  EXPECT_THAT(check_experts(model("decoder.layers.0.mlp.router.weight",
                                  "decoder.layers.1.mlp.experts.", {0, 1}, ".weight")),
              IsEmpty())
      << "a router of another layer";
  EXPECT_THAT(check_experts(tensors({{"a.router.weight", {INT64_MAX, 0}}, {"a.experts.0.w", {1}}})),
              testing::SizeIs(1))
      << "a claimed size costs nothing";
}

}  // namespace
}  // namespace reprise
