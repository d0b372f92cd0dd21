// Tests what is said of a tensor whose numbers are compared with those of an older checkpoint.

#include "core/verify/health_against.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/ports/no_progress.hpp"
#include "core/verify/verify.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise::test::health_against_test {
namespace {

using ::testing::HasSubstr;

ElementStats stats_of_floats(const std::vector<float>& values) {
  ElementStats stats;
  stats.add(DType::kFloat32, std::as_bytes(std::span(values)));
  return stats;
}

struct Row {
  const char* what;
  const char* key;
  std::vector<float> then;
  std::vector<float> now;
  HealthLimits limits;
  std::optional<Severity> severity;
  const char* words = "";
};

TEST(HealthAgainst, each_change_for_the_worse_is_told) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Row rows[] = {
      {"trained", "w", {1, 2}, {1.1F, 2.1F}, {}, std::nullopt},
      {"nan", "w", {1, 2}, {1, nan}, {}, Severity::kError, "1 are not any more"},
      {"nan before", "w", {nan, 2}, {1, nan}, {}, std::nullopt},
      {"zero", "w", {1, 2}, {0, 0}, {}, Severity::kError, "became zero"},
      {"constant", "w", {1, 2}, {3, 3}, {}, Severity::kError, "became the same"},
      {"ones that moved", "norm.w", {1, 1}, {0.9F, 1.1F}, {}, std::nullopt},
      {"ones became zero", "norm.w", {1, 1}, {0, 0}, {}, Severity::kError, "became zero"},
      {"moments", "optimizer.state.w.exp_avg", {1, 2}, {0, 0}, {}, Severity::kWarning, "zero"},
      {"some NaN", "w", {1, 2}, {1, nan}, {.nan = 5}, std::nullopt},
      {"rate", "lr_scheduler.lr", {1, 2}, {0, 0}, {}, std::nullopt},
      {"zero before", "optimizer.state.w.exp_avg", {0, 0}, {1, 2}, {}, std::nullopt},
      {"largest", "w", {1, -2}, {1, -5}, {.absolute_growth = 2}, Severity::kError, "from 2 to 5"},
      {"within", "w", {1, -2}, {1, -4}, {.absolute_growth = 2}, std::nullopt},
      {"norm",
       "w",
       {3, 4},
       {30, 40},
       {.norm_growth = 9},
       Severity::kError,
       "norm grew from 5 to 50"},
  };
  for (const Row& row : rows) {
    StoredTensor tensor;
    tensor.key = row.key;
    tensor.shape = {2};
    tensor.dtype = DType::kFloat32;
    const Findings findings =
        judge_against(tensor, stats_of_floats(row.now), stats_of_floats(row.then), row.limits);
    ASSERT_EQ(findings.size(), row.severity ? 1U : 0U) << row.what;
    if (!row.severity) continue;
    EXPECT_EQ(findings[0].severity, *row.severity) << row.what;
    EXPECT_THAT(findings[0].message, HasSubstr(row.words)) << row.what;
  }
}

TEST(HealthAgainst, a_number_without_dimensions_is_no_weight) {
  StoredTensor tensor;
  tensor.key = "model.scale";
  tensor.dtype = DType::kFloat32;
  EXPECT_TRUE(judge_against(tensor, stats_of_floats({0}), stats_of_floats({1}), {}).empty());
  tensor.shape = {1};
  const Findings findings = judge_against(tensor, stats_of_floats({0}), stats_of_floats({1}), {});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].message, "its only number became zero");
}

Bytes bytes_of_floats(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

TEST(HealthAgainst, a_weight_that_stayed_is_a_warning_if_it_has_moments) {
  WrittenCheckpoint older;
  WrittenCheckpoint newer;
  const Dims shape{2};
  for (auto* one : {&older, &newer}) {
    const float moved = one == &newer ? 3 : 2;
    one->tensor("a.w", DType::kFloat32, shape, bytes_of_floats({1, moved}));
    one->tensor("b.w", DType::kFloat32, shape, bytes_of_floats({1, 2}));
    one->tensor("frozen.w", DType::kFloat32, shape, bytes_of_floats({5, 6}));
    one->tensor("optimizer.state.a.w.exp_avg", DType::kFloat32, shape, bytes_of_floats({1, moved}));
    one->tensor("optimizer.state.b.w.exp_avg", DType::kFloat32, shape, bytes_of_floats({1, moved}));
  }
  Checkpoint then = Checkpoint::open(older.store(), "ckpt");
  Checkpoint now = Checkpoint::open(newer.store(), "ckpt");
  HostDevice device("test", 0);
  ThreadTasks tasks(2);
  NoProgress progress;
  HealthMeter meter;
  const auto result = health_against(now, meter.report(now, device, tasks, {}).stats, then,
                                     {device, tasks, progress}, {});
  EXPECT_EQ(result.compared, 5U);
  ASSERT_EQ(result.findings.size(), 1U);
  EXPECT_EQ(result.findings[0].severity, Severity::kWarning);
  EXPECT_EQ(result.findings[0].key, "b.w");
}

}  // namespace
}  // namespace reprise::test::health_against_test
