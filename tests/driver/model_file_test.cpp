// Tests models that are read from files.

#include "driver/language/model_file.hpp"

#include <gtest/gtest.h>

#include "tests/contracts/error_of.hpp"

namespace reprise::driver {
namespace {

TEST(ModelFile, parameters_have_keys_shapes_and_ordered_splits) {
  const auto model = parse_model(
      "parameters:\n  - {key: w, shape: [7, 5], splits: [tp/0, dp/1]}\n  - {key: s, shape: []}\n",
      "m.yaml");
  ASSERT_EQ(model.parameters.size(), 2U);
  EXPECT_EQ(model.name, "m");
  EXPECT_EQ(model.parameters[0].shape, (Dims{7, 5}));
  EXPECT_EQ(model.parameters[0].placement, Placement({{"tp", 0}, {"dp", 1}}));
  EXPECT_TRUE(model.parameters[1].shape.empty());
}

TEST(ModelFile, a_gpt_of_other_sizes_is_one_line) {
  const auto model = parse_model("gpt: {layers: 3, hidden: 8, ffn: 16, vocabulary: 100}", "g.yaml");
  EXPECT_EQ(model.parameters.front().shape, (Dims{100, 8}));
}

TEST(ModelFile, mistakes_name_the_line) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"gpt: {layers: 3, hidden: 8, ffn: 16}", "lacks 'vocabulary'"},
      {"gpt: {layers: x, hidden: 8, ffn: 16, vocabulary: 9}", "not 'x'"},
      {"parameters: 3", "needs 'gpt' or a list"},
      {"parameters:\n  - {key: w}", "lacks 'shape'"},
      {"parameters:\n  - {key: w, shape: [-1]}", "not '-1'"},
      {"parameters:\n  - {key: w, shape: [4], splits: [tp]}", "such as tp/0"},
      {"parameters:\n  - {key: w, shape: [4], splits: [tp/1]}", "splits dimension 1"},
      {"parameters:\n  - {key: w, shape: [4], split: [tp/0]}", "did you mean 'splits'"},
      {"parameters:\n  - {key: w, shape: [1099511627776, 1099511627776]}", "too large"},
  };
  for (const auto& [text, says] : rows) {
    const auto error = contracts::error_of([&text = text] { parse_model(text, "m.yaml"); });
    ASSERT_TRUE(error) << says;
    EXPECT_NE(std::string(error->what()).find(says), std::string::npos) << error->what();
    EXPECT_NE(error->place().file.find("m.yaml:"), std::string::npos) << error->what();
  }
}

}  // namespace
}  // namespace reprise::driver
