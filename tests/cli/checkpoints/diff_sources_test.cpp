// Tests that `reprise diff` says where values come from, on tensors that torch changed in ways that
// have names, and that it says nothing where there is no source.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "tests/fixtures/written_checkpoint.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::diff_sources_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

std::string fixture(const std::string& name) {
  return std::string(REPRISE_TEST_DATA) + "/changes_2.15.0/" + name;
}

/// Runs `diff --json` and returns the rows of tensors by key.
std::map<std::string, Json> rows_of(const std::string& left, const std::string& right) {
  const auto result = run_program({"diff", "--json", left, right});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  std::map<std::string, Json> rows;
  const Json document = Json::parse(result.out);
  for (const Json& row : document["tensors"]) rows[row["key"]] = row;
  return rows;
}

const std::map<std::string, std::string>& sentences() {
  static const std::map<std::string, std::string> all = {
      {"rows.blocks", "B[2:4] is A[4:6]: the same 16 blocks of 2 rows, permuted"},
      {"rows.unequal", "B[0:3] is A[9:12]: the same 3 blocks of 3 to 5 rows, permuted"},
      {"rows.reversed", "B[0:1] is A[9:10]: the same 10 blocks of 1 row, in reverse order"},
      {"rows.halves", "B[0:8] is A[8:16]: the same 2 blocks of 8 rows, exchanged"},
      {"rows.interleaved",
       "B[2:4] is A[8:10]: the same 12 blocks of 2 rows, in the order of a transposed table of 3 x "
       "4 blocks"},
      {"rows.some", "B[0:4] is A[8:12], B[8:12] is A[0:4]; 4 rows of 16 are not found in A"},
      {"rows.with_zeros", "B[0:4] is A[4:8]: the same 4 blocks of 4 rows, permuted"},
      {"rows.padded", "B[0:13] is A[0:13]; 3 rows of 16 are not found in A"},
      {"columns.blocks", "B[:, 0:4] is A[:, 8:12]: the same 3 blocks of 4 columns, rotated by 2"},
      {"stacked.experts", "B[1:2] is A[4:5]: the same 6 blocks of 1 row, permuted"},
      {"stacked.rows", "B[:, 2:4] is A[:, 4:6]: the same 4 blocks of 2 slices, permuted"},
      {"bias.blocks", "B[6:12] is A[12:18]: the same 4 blocks of 6 elements, permuted"},
      {"transposed.oblong", "B is A transposed"},
      {"transposed.square", "B is A transposed"},
      {"transposed.stacked", "B is A transposed"},
      {"experts.1.w1", "B's experts.1.w1 is A's experts.4.w1"},
      {"experts.2.w1", "B's experts.2.w1 is A's experts.1.w1"},
      {"attention.q", "B's attention.q is A's attention.k"},
      {"attention.k", "B's attention.k is A's attention.q"},
      {"rounded.bfloat16", "every element of B is A's rounded to bfloat16"},
      {"rounded.float16", "every element of B is A's rounded to float16"},
      {"rounded.float8_e4m3fn", "every element of B is A's rounded to float8_e4m3fn"},
      {"rounded.float8_e5m2", "every element of B is A's rounded to float8_e5m2"},
      {"converted.bfloat16", "every element of B is A's rounded to bfloat16"},
      {"converted.float16", "every element of B is A's rounded to float16"},
      {"converted_back.bfloat16", "every element of A is B's rounded to bfloat16"},
      {"converted_back.float16", "every element of A is B's rounded to float16"},
      {"widened.bfloat16", "every element of B has the value of A's"},
      {"widened.float16", "every element of B has the value of A's"},
      {"cut.bfloat16", "every element of B is A's cut off to bfloat16, without rounding"},
      {"converted.rows",
       "B[0:8] is A[8:16]: the same 2 blocks of 8 rows, exchanged, and rounded to bfloat16"},
      {"scaled.twice", "B is A times 2"},
      {"scaled.tenth", "B is A times 0.1"},
      {"scaled.third", "B is A times 1/3"},
      {"scaled.bfloat16", "B is A times 0.3"},
      {"negated", "B is A negated"},
      {"new.name", "B's new.name is A's old.name"},
      {"old.name", "A's old.name is B's new.name"},
      {"new.kernel", "B's new.kernel is A's old.kernel transposed"},
      {"old.kernel", "A's old.kernel is B's new.kernel transposed"},
      {"head", "A's head is B's embedding"},
  };
  return all;
}

TEST(DiffSources, each_change_of_torch_is_told_by_its_name) {
  const auto rows = rows_of(fixture("a"), fixture("b"));
  for (const auto& [key, sentence] : sentences()) {
    ASSERT_TRUE(rows.contains(key)) << key;
    const Json& source = rows.at(key)["source"];
    ASSERT_FALSE(source.is_null()) << key;
    EXPECT_EQ(source["sentence"], sentence) << key;
  }
  const Json& order = rows.at("rows.unequal")["source"]["order"];
  EXPECT_EQ(order["dimension"], 0);
  EXPECT_EQ(order["blocks"], Json::parse(R"([{"begin": 0, "end": 3, "from": 9},
      {"begin": 3, "end": 7, "from": 5}, {"begin": 7, "end": 12, "from": 0}])"));
  EXPECT_EQ(rows.at("scaled.twice")["source"]["relation"]["factor"], 2);
}

TEST(DiffSources, nothing_is_told_of_training_zeros_or_chance) {
  const auto rows = rows_of(fixture("a"), fixture("b"));
  std::size_t looked_at = 0;
  for (const auto& [key, row] : rows) {
    if (!key.starts_with("none.")) continue;
    EXPECT_TRUE(row["source"].is_null()) << key << row["source"];
    ++looked_at;
  }
  EXPECT_EQ(looked_at, 12U);
}

TEST(DiffSources, generations_of_a_training_have_no_sources) {
  const auto rows = rows_of(fixture("run/step-2"), fixture("run/step-4"));
  for (const auto& [key, row] : rows) EXPECT_TRUE(row["source"].is_null()) << key << row["source"];
}

TEST(DiffSources, they_are_lines_below_the_rows_and_can_be_left_out) {
  const auto result = run_program({"diff", "--limit", "0", fixture("a"), fixture("b")});
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("source: rows.blocks: B[2:4] is A[4:6]: the same 16 blocks of 2 rows, "
                      "permuted\n"),
            HasSubstr("source: B's experts.1.w1 is A's experts.4.w1\n")));
  const auto without = run_program({"diff", "--no-sources", fixture("a"), fixture("b")});
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_THAT(without.out, Not(HasSubstr("source: ")));
  const auto one = run_program({"diff", "--jobs", "1", "--limit", "0", fixture("a"), fixture("b")});
  EXPECT_EQ(one.out, result.out);
}

TEST(DiffSources, what_moved_most_comes_first) {
  const auto result =
      run_program({"diff", "--json", "--sort", "change", fixture("a"), fixture("b")});
  const Json tensors = Json::parse(result.out)["tensors"];
  double last = std::numeric_limits<double>::infinity();
  std::size_t numbers = 0;
  for (const Json& row : tensors) {
    const Json& change = row["relative_change"];
    if (!change.is_number()) continue;
    EXPECT_LE(change.get<double>(), last);
    last = change;
    ++numbers;
  }
  EXPECT_GT(numbers, 20U);
  std::map<std::string, Json> rows;
  for (const Json& row : tensors) rows[row["key"]] = row;
  EXPECT_EQ(rows["none.from_zeros"]["relative_change"], "inf");
  EXPECT_EQ(rows["none.zeroed"]["relative_change"], 1);
  EXPECT_EQ(rows["negated"]["relative_change"], 2);
  EXPECT_EQ(rows["scaled.twice"]["relative_change"], 1);
  EXPECT_EQ(rows["none.zeroed"]["share_that_differs"], 1);
  EXPECT_TRUE(rows["transposed.oblong"]["relative_change"].is_null());
  const auto stat = run_program({"diff", "--stat", fixture("a"), fixture("b")});
  EXPECT_THAT(stat.out,
              AllOf(HasSubstr("change: ||B - A|| / ||A||"),
                    HasSubstr("sources of 44 tensors were found"), Not(HasSubstr("source: "))));
  const auto wrong = run_program({"diff", "--sort", "size", fixture("a"), fixture("b")});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("neither key nor change"));
}

TEST(DiffSources, a_word_within_keys_is_hinted_at_and_the_hint_works) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  for (const char* layer : {"0", "1", "2"}) {
    a.bytes(std::string("l.") + layer + "._checkpoint_wrapped_module.w", 2, 1);
    b.bytes(std::string("l.") + layer + ".w", 2, 1);
  }
  a.store();
  b.store();
  const std::string left = a.path() + "/ckpt";
  const std::string right = b.path() + "/ckpt";
  const auto result = run_program({"diff", left, right});
  EXPECT_THAT(result.out,
              HasSubstr("hint: 3 keys of A are keys of B with '_checkpoint_wrapped_module.' in "
                        "them: --rename 's/_checkpoint_wrapped_module\\.//' matches them\n"));
  EXPECT_EQ(
      run_program({"diff", "--rename", "s/_checkpoint_wrapped_module\\.//", left, right}).exit_code,
      0);
  const auto other = Json::parse(run_program({"diff", "--json", right, left}).out);
  EXPECT_TRUE(other["rename_hint"].is_null());
  EXPECT_EQ(other["rename_rules"]["of"], "B");
}

/// Three numbers that are negated, and a mask of which as many elements are set.
TEST(DiffSources, nothing_is_told_of_few_bytes_and_of_masks) {
  WrittenCheckpoint a;
  WrittenCheckpoint b;
  const auto floats = [](const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return Bytes(bytes.begin(), bytes.end());
  };
  std::vector<float> mask(64);
  std::vector<float> order(64);
  for (std::size_t i = 0; i < 64; ++i) {
    mask[i] = i % 3 == 0 ? 1 : 0;
    order[i] = static_cast<float>(i + 1);
  }
  const auto add = [&](WrittenCheckpoint& to, float sign) {
    to.tensor("few", DType::kFloat32, {3}, floats({1 * sign, 2 * sign, 3 * sign}));
    to.tensor("mask", DType::kFloat32, {64}, floats(mask));
    to.tensor("order", DType::kFloat32, {64}, floats(order));
  };
  add(a, 1);
  std::rotate(mask.begin(), mask.begin() + 1, mask.end());
  std::rotate(order.begin(), order.begin() + 1, order.end());
  add(b, -1);
  a.store();
  b.store();
  const auto rows = rows_of(a.path() + "/ckpt", b.path() + "/ckpt");
  EXPECT_TRUE(rows.at("few")["source"].is_null()) << rows.at("few")["source"];
  EXPECT_TRUE(rows.at("mask")["source"].is_null()) << rows.at("mask")["source"];
  EXPECT_FALSE(rows.at("order")["source"].is_null());
}

}  // namespace
}  // namespace reprise::test::diff_sources_test
