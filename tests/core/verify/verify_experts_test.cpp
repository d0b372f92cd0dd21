// Tests that experts stored with the bits of others are found, and healthy experts are not.

#include "core/verify/verify_experts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/ports/no_progress.hpp"
#include "core/verify/verify.hpp"
#include "tests/fixtures/written_checkpoint.hpp"

namespace reprise {
namespace {

using test::WrittenCheckpoint;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kElements = 128;
constexpr int kConstant = -1;

/// Returns float32 elements that depend on `content`; all are zero if it is kConstant.
Bytes elements_of(int content) {
  std::vector<float> elements(kElements, 0);
  if (content != kConstant) {
    for (int i = 0; i < kElements; ++i)
      elements[static_cast<std::size_t>(i)] = static_cast<float>(content * kElements + i);
  }
  const auto bytes = std::as_bytes(std::span(elements));
  return {bytes.begin(), bytes.end()};
}

std::string key_of(const std::string& before, int expert, const std::string& after) {
  return before + std::to_string(expert) + after;
}

/// Returns what verify says of experts with equal bits.
Findings alike_in(WrittenCheckpoint& written, const std::string& path = "ckpt") {
  NoProgress progress;
  Findings found = verify(written.store(), path, PayloadCheck::kRead, progress).findings;
  std::erase_if(found, [](const Finding& finding) {
    return finding.message.find("same bits") == std::string::npos;
  });
  return found;
}

/// A checkpoint of numbered experts with these contents, in the order of their numbers.
void add_experts(WrittenCheckpoint& written, const std::string& before, const std::string& after,
                 const std::vector<int>& contents) {
  for (std::size_t i = 0; i < contents.size(); ++i) {
    written.tensor(key_of(before, static_cast<int>(i), after), DType::kFloat32, {kElements},
                   elements_of(contents[i]));
  }
}

const std::vector<std::pair<std::string, std::string>>& forms() {
  static const std::vector<std::pair<std::string, std::string>> all = {
      {"layers.0.mlp.experts.local_experts.", ".linear_fc1.weight"},
      {"layers.0.mlp.experts.", ".up_proj.weight"},
      {"layers.0.mlp.experts.linear_fc1.weight", ""}};
  return all;
}

TEST(ExpertContents, of_others_are_a_warning_where_the_experts_were_trained) {
  for (const auto& [before, after] : forms()) {
    WrittenCheckpoint written;
    add_experts(written, before, after, {0, 1, 0, 1});
    add_experts(written, "optimizer.state.exp_avg." + before, after, {2, 3, 4, 5});
    const Findings found = alike_in(written);
    ASSERT_EQ(found.size(), 1U) << before;
    EXPECT_EQ(found[0].severity, Severity::kWarning);
    EXPECT_THAT(found[0].message,
                AllOf(HasSubstr(key_of(before, 2, after) + " = " + key_of(before, 0, after)),
                      HasSubstr(key_of(before, 3, after) + " = " + key_of(before, 1, after))));
  }
}

TEST(ExpertContents, of_moments_alone_are_a_warning) {
  const auto& [before, after] = forms()[0];
  WrittenCheckpoint written;
  add_experts(written, before, after, {0, 1, 2, 3});
  add_experts(written, "optimizer.state.exp_avg_sq." + before, after, {0, 1, 0, 1});
  const Findings found = alike_in(written);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
}

TEST(ExpertContents, that_begin_as_copies_are_a_note) {
  for (const auto& [before, after] : forms()) {
    for (const bool moments : {false, true}) {
      WrittenCheckpoint written;
      add_experts(written, before, after, {0, 0, 0, 0});
      if (moments) {
        add_experts(written, "optimizer.state.exp_avg." + before, after,
                    {kConstant, kConstant, kConstant, kConstant});
      }
      const Findings found = alike_in(written);
      ASSERT_EQ(found.size(), 1U) << before;
      EXPECT_EQ(found[0].severity, Severity::kNote);
    }
  }
}

TEST(ExpertContents, that_differ_or_are_constant_or_of_one_expert_say_nothing) {
  for (const auto& [before, after] : forms()) {
    WrittenCheckpoint written;
    add_experts(written, before, after, {0, 1, 2, 3});
    add_experts(written, "layers.1." + before, after, {0, 1, 2, 3});
    add_experts(written, "optimizer.state.exp_avg." + before, after,
                {kConstant, kConstant, kConstant, kConstant});
    const std::string constant = "layers.2." + before;
    add_experts(written, constant, after, {kConstant, kConstant});
    EXPECT_THAT(alike_in(written), IsEmpty()) << before;
  }
  WrittenCheckpoint one;
  one.chunks("experts.local_experts.0.w", DType::kFloat32, {2 * kElements},
             {{{{0}, {kElements}}, elements_of(1)}, {{{kElements}, {kElements}}, elements_of(1)}});
  one.tensor("experts.local_experts.0.v", DType::kFloat32, {kElements}, elements_of(1));
  EXPECT_THAT(alike_in(one), IsEmpty());
}

TEST(ExpertContents, that_are_stacked_are_compared_by_chunks) {
  const auto stacked = [](WrittenCheckpoint& written, const std::string& key, int first,
                          int second) {
    written.chunks(key, DType::kFloat32, {4, kElements / 2},
                   {{{{0, 0}, {2, kElements / 2}}, elements_of(first)},
                    {{{2, 0}, {2, kElements / 2}}, elements_of(second)}});
  };
  const std::string key = "layers.0.mlp.experts.experts.linear_fc1.weight";
  WrittenCheckpoint written;
  stacked(written, key, 0, 0);
  stacked(written, "optimizer.state.exp_avg." + key, 1, 2);
  const Findings found = alike_in(written);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_THAT(found[0].message, HasSubstr("at [2, 0] = " + key + " at [0, 0]"));
  WrittenCheckpoint whole;
  stacked(whole, key, 0, 1);
  EXPECT_THAT(alike_in(whole), IsEmpty());
}

}  // namespace
}  // namespace reprise
