#include "core/format/step_names.hpp"

#include <gtest/gtest.h>

#include <string>

#include "reprise/error.hpp"

namespace reprise {
namespace {

TEST(StepNames, name_directories_and_are_read_back) {
  struct Row {
    std::string pattern;
    Step step;
    std::string name;
  };
  for (const Row& row :
       {Row{"iter_%07d", Step{12}, "iter_0000012"},
        Row{"iter_%07d", Step{123456789}, "iter_123456789"}, Row{"step-%d", Step{0}, "step-0"},
        Row{"%d", Step{40}, "40"}, Row{"epoch_%03d.ckpt", Step{7}, "epoch_007.ckpt"}}) {
    const StepNames names(row.pattern);
    EXPECT_EQ(names.directory_of(row.step), row.name);
    EXPECT_EQ(names.step_of(row.name), row.step) << row.name;
  }
}

TEST(StepNames, take_no_name_that_they_would_not_give) {
  const StepNames names("step-%d");
  for (const char* name : {"step-", "step-x", "step-01", "step--1", "step-1.saving", "stepp-1", "1",
                           "step-99999999999999999999", "release"}) {
    EXPECT_EQ(names.step_of(name), std::nullopt) << name;
  }
  EXPECT_EQ(StepNames().step_of("iter_012"), std::nullopt);
}

TEST(StepNames, refuse_a_pattern_without_exactly_one_number) {
  for (const char* pattern : {"", "step", "%", "%s", "%d-%d", "a/%d", "%5d", "%0d", "%0999d",
                              "%-3d", "%d.saving", "%d.removing"}) {
    try {
      const StepNames names{std::string(pattern)};
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kUsage) << pattern;
    }
  }
}

TEST(StepNames, are_known_of_several_programs) {
  EXPECT_EQ(step_in_any_name("iter_0000007"), Step{7});
  for (const char* name : {"step-9", "checkpoint-9", "checkpoint_9", "global_step9"}) {
    EXPECT_EQ(step_in_any_name(name), Step{9}) << name;
  }
  EXPECT_FALSE(step_in_any_name("model-9"));
  EXPECT_FALSE(step_in_any_name("checkpoint-best"));
}

TEST(StepNames, of_megatron_alone_have_a_tracker) {
  EXPECT_TRUE(StepNames().have_tracker());
  EXPECT_TRUE(StepNames("iter_%07d").have_tracker());
  EXPECT_FALSE(StepNames("iter_%d").have_tracker());
}

}  // namespace
}  // namespace reprise
