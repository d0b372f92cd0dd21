// Tests how the shapes of parts, which several model ranks name, are compared with that of the
// whole. What real files of one rank say is tested in
// tests/cli/checkpoints/universal_verbs_test.cpp.

#include "core/checkpoint/universal_parameters.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise::test::universal_parameters_test {
namespace {

/// Returns the code of the first error; OK if there is none.
std::string judged(const Dims& whole, const std::vector<Dims>& parts, bool vocabulary = false) {
  UniversalParameters says;
  says.states["w"]["fp32"] = whole;
  says.named["w"] = parts;
  says.model_ranks_in_all = static_cast<std::int64_t>(parts.size());
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    says.model_ranks.insert(static_cast<std::int32_t>(rank));
  }
  if (vocabulary) says.vocabularies.insert("w");
  for (const Finding& finding : judge_universal(says)) {
    if (finding.severity == Severity::kError) return std::string(name_of(finding.code));
  }
  return "OK";
}

TEST(UniversalParameters, parts_of_model_ranks_make_the_whole) {
  EXPECT_EQ(judged({4, 6}, {{4, 6}}), "OK");
  EXPECT_EQ(judged({4, 6}, {{4, 6}, {4, 6}}), "OK");  // each rank has all of it
  EXPECT_EQ(judged({8, 6}, {{4, 6}, {4, 6}}), "OK");
  EXPECT_EQ(judged({4, 12}, {{4, 6}, {4, 6}}), "OK");
  EXPECT_EQ(judged({7, 6}, {{4, 6}, {4, 6}}, true), "OK");  // without padding
}

TEST(UniversalParameters, other_shapes_are_errors) {
  EXPECT_EQ(judged({4, 5}, {{4, 6}}), "SHAPE_DRIFT");
  EXPECT_EQ(judged({24}, {{4, 6}}), "SHAPE_DRIFT");
  EXPECT_EQ(judged({7, 6}, {{4, 6}, {4, 6}}), "SHAPE_DRIFT");
  EXPECT_EQ(judged({9, 6}, {{4, 6}, {4, 6}}, true), "SHAPE_DRIFT");
  EXPECT_EQ(judged({4, 5}, {{4, 6}}, true), "SHAPE_DRIFT");
  EXPECT_EQ(judged({8, 12}, {{4, 6}, {4, 6}}), "SHAPE_DRIFT");
  EXPECT_EQ(judged({8, 6}, {{4, 6}, {4}}), "SHAPE_DRIFT");
}

TEST(UniversalParameters, a_size_is_read_only_from_what_torch_writes) {
  Object size;
  size.type = {"torch", "Size"};
  size.args = {Tuple{{Value(4), Value(6)}}};
  EXPECT_EQ(shape_in(Value(size)), (Dims{4, 6}));
  size.args = {Tuple{{Value(-4)}}};
  EXPECT_EQ(shape_in(Value(size)), std::nullopt);
  size.args = {Tuple{List(kMaxNdim + 1, Value(1))}};
  EXPECT_EQ(shape_in(Value(size)), std::nullopt);
  EXPECT_EQ(shape_in(Value(4)), std::nullopt);
}

}  // namespace
}  // namespace reprise::test::universal_parameters_test
