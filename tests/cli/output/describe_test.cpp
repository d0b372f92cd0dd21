// Tests the short descriptions of stored tensors and objects.

#include "cli/output/describe.hpp"

#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

TEST(Describe, a_checkpoint_is_the_run_s_that_its_common_state_names) {
  struct Row {
    Value common;
    const char* text;
  };
  const Row rows[] = {
      {Dict{{"reprise", Dict{{"run", Value("llm")}, {"parent_step", Value(std::int64_t{200})}}}},
       "llm, which came from step 200"},
      {Dict{{"reprise", Dict{{"run", Value("llm")}, {"parent_step", Value(NoneType{})}}}}, "llm"},
      {Dict{{"reprise", Dict{{"run", Value("llm")}, {"engine", Value("reprise 0.1.0")}}}},
       "llm, written by reprise 0.1.0"},
      {Dict{{"reprise", Dict{{"run", Value(std::int64_t{7})}}}}, ""},
      {Dict{{"reprise", Value("llm")}}, ""},
      {Dict{{"iteration", Value(std::int64_t{7})}}, ""},
      {Value(NoneType{}), ""},
  };
  for (const Row& row : rows) EXPECT_EQ(describe_run(row.common), row.text) << row.common;
}

}  // namespace
}  // namespace reprise::cli
