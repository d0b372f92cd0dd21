// Tests what --health says of tensors: of the fixtures, which are healthy, and of numbers that are
// not.

#include "core/verify/verify_health.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/geometry/element_values.hpp"
#include "core/megatron/parameter_role.hpp"
#include "core/verify/verify.hpp"
#include "tests/fixtures/stored_fixture.hpp"

namespace reprise::test::verify_health_test {
namespace {

using ::testing::HasSubstr;

StoredTensor tensor_of(std::string key, Dims shape, DType dtype = DType::kFloat32) {
  StoredTensor tensor;
  tensor.key = std::move(key);
  tensor.shape = shape;
  tensor.dtype = dtype;
  return tensor;
}

ElementStats stats_of_floats(const std::vector<float>& values) {
  ElementStats stats;
  stats.add(DType::kFloat32, std::as_bytes(std::span(values)));
  return stats;
}

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = 0.1F * static_cast<float>(i + 1);
  return values;
}

struct Row {
  const char* what;
  std::string key;
  Dims shape;
  std::vector<float> values;
  HealthLimits limits;
  std::optional<Severity> severity;
  std::string words = {};
};

TEST(VerifyHealth, each_kind_is_judged) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> zeros(64, 0.F);
  std::vector<float> with_nan = ramp(64);
  with_nan[3] = nan;
  std::vector<float> with_inf = ramp(64);
  with_inf[3] = with_inf[5] = -inf;
  std::vector<float> denormal = ramp(100);
  denormal[7] = 1e-42F;
  const Row rows[] = {
      {"a ramp", "w", {8, 8}, ramp(64), {}, {}},
      {"NaN", "w", {8, 8}, with_nan, {}, Severity::kError, "1 of 64 numbers is NaN"},
      {"NaN of a bias", "b", {64}, with_nan, {}, Severity::kError, "is NaN"},
      {"NaN of an optimizer", "optimizer.state.exp_avg.w", {8, 8}, with_nan, {}, Severity::kError},
      {"one NaN allowed", "w", {8, 8}, with_nan, {.nan = 1}, {}},
      {"infinite", "w", {8, 8}, with_inf, {}, Severity::kError, "2 of 64 numbers are infinite"},
      {"two allowed", "w", {8, 8}, with_inf, {.infinite = 2}, {}},
      {"zeros", "w", {8, 8}, zeros, {}, Severity::kWarning, "all 64 numbers are 0"},
      {"all the same", "w", {8, 8}, std::vector<float>(64, .5F), {}, Severity::kWarning, "are 0.5"},
      {"zeros of a bias", "b", {64}, zeros, {}, {}},
      {"few zeros", "w", {7, 9}, std::vector<float>(63, 0.F), {}, {}},
      {"zeros of a moment", "optimizer.state.exp_avg.w", {8, 8}, zeros, {}, {}},
      {"zeros within a limit", "w", {8, 8}, zeros, {.zeros = 1.0}, Severity::kWarning},
      {"zeros beyond it", "w", {8, 8}, zeros, {.zeros = .5}, Severity::kError, "are zero"},
      {"denormal",
       "w",
       {10, 10},
       denormal,
       {},
       Severity::kWarning,
       "1 of 100 numbers are denormal"},
      {"denormal of a moment", "optim.exp_avg_sq.w", {10, 10}, denormal, {}, {}},
      {"denormal beyond a limit", "w", {10, 10}, denormal, {.denormals = .001}, Severity::kError},
      {"denormal within it", "w", {10, 10}, denormal, {.denormals = .01}, {}},
      {"too large", "w", {8, 8}, ramp(64), {.absolute = 6.0}, Severity::kError, "value is 6.4"},
      {"not too large", "w", {8, 8}, ramp(64), {.absolute = 6.5}, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const auto findings =
        judge_health(tensor_of(row.key, row.shape), stats_of_floats(row.values), row.limits);
    ASSERT_EQ(findings.size(), row.severity ? 1U : 0U);
    if (!row.severity) continue;
    EXPECT_EQ(findings[0].severity, *row.severity);
    EXPECT_EQ(findings[0].key, row.key);
    EXPECT_THAT(findings[0].message, HasSubstr(row.words));
  }
}

TEST(VerifyHealth, integers_are_passed_over) {
  ElementStats stats;
  const std::vector<std::int64_t> zeros(64);
  stats.add(DType::kInt64, std::as_bytes(std::span(zeros)));
  EXPECT_TRUE(judge_health(tensor_of("w", {8, 8}, DType::kInt64), stats, {}).empty());
}

/// Megatron wrote NaN between the parameters of these buffers, where it initializes nothing.
TEST(VerifyHealth, buffers_of_the_distributed_optimizer_are_noted) {
  NoProgress progress;
  HostDevice device("test", 0);
  const HealthRequest request{{}, device};
  const auto report = verify(data_store(), "optimizer_forms_0.16.1/dp_reshardable",
                             PayloadCheck::kRead, progress, &request);
  ASSERT_TRUE(report.health);
  EXPECT_TRUE(report.health->healthy());
  EXPECT_EQ(report.health->buckets, 24U);
  ASSERT_EQ(report.health->findings.size(), 1U);
  EXPECT_THAT(report.health->findings[0].message,
              HasSubstr("24 buffers of the distributed optimizer were not judged (23 with NaN"));
}

/// Numbers by TensorReader beside those that pass while the checksums are compared.
TEST(VerifyHealth, what_passes_is_what_is_read) {
  for (const std::string fixture :
       {"mcore_0.16.1_gpt_tp2_pp2", "mcore_0.16.1_gpt_dp2", "mcore_0.16.1_buckets",
        "safetensors_0.8.0/one", "safetensors_0.8.0/pieces", "safetensors_0.8.0/dtypes",
        "torch_2.15.0/plain_odd", "torch_2.15.0/sd_view_strided", "torch_2.15.0/nocollectives"}) {
    SCOPED_TRACE(fixture);
    Checkpoint checkpoint = Checkpoint::open_any(data_store(), fixture);
    HostDevice device("test", 0);
    Bytes staging(1U << 20U);
    std::uint64_t tensors = 0;
    std::uint64_t numbers = 0;
    std::uint64_t buckets = 0;
    Findings expected;
    for (const auto& tensor : checkpoint.catalog().tensors) {
      if (!is_float_like(tensor.dtype)) continue;
      if (is_of_bucket(tensor.key)) {
        ++buckets;
        continue;
      }
      ++tensors;
      const ElementStats stats = stats_of({checkpoint, device, staging}, tensor);
      numbers += stats.numbers;
      for (auto& finding : judge_health(tensor, stats, {.absolute = 0.5})) {
        expected.push_back(std::move(finding));
      }
    }
    NoProgress progress;
    const HealthRequest request{{.absolute = 0.5}, device};
    const auto report = verify(data_store(), fixture, PayloadCheck::kRead, progress, &request);
    ASSERT_TRUE(report.health);
    EXPECT_EQ(report.health->tensors, tensors);
    EXPECT_EQ(report.health->numbers, numbers);
    EXPECT_EQ(report.health->buckets, buckets);
    Findings findings = report.health->findings;
    std::erase_if(findings,
                  [](const Finding& finding) { return finding.severity == Severity::kNote; });
    EXPECT_EQ(findings, expected);
  }
}

}  // namespace
}  // namespace reprise::test::verify_health_test
