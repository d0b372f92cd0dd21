#include "cli/output/diff_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/output/version_line.hpp"

namespace reprise::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TensorDiff tensor_of(const std::string& key, std::uint64_t wrong, std::uint64_t elements) {
  TensorDiff tensor{.key = key, .verdict = DiffVerdict::kSame};
  tensor.comparison.elements = elements;
  tensor.comparison.bit_mismatches = wrong;
  if (wrong == 0) return tensor;
  tensor.verdict = DiffVerdict::kDifferent;
  tensor.comparison.max_delta = 0.5;
  tensor.first = Dims{2, 3};
  tensor.first_left = "1 (0x3f80)";
  tensor.first_right = "1.5 (0x3fc0)";
  return tensor;
}

/// Returns the number of times that `word` stands in `text`.
std::size_t count_of(const std::string& word, const std::string& text) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

DiffReport some_report() {
  DiffReport report;
  report.tensors = {tensor_of("decoder.layers.2.fc1.weight", 3, 100),
                    tensor_of("decoder.layers.10.fc1.weight", 0, 100),
                    tensor_of("decoder.layers.2.fc2.weight", 0, 100),
                    tensor_of("embedding.weight", 100, 100)};
  report.tensors.push_back({.key = "head.weight", .verdict = DiffVerdict::kOnlyLeft});
  report.elements = 400;
  report.tensors_compared = 4;
  return report;
}

TEST(DiffPage, maps_the_share_of_wrong_elements_by_group_of_keys_and_number) {
  const std::string page = diff_page({.left = "a", .right = "b"}, some_report());
  EXPECT_THAT(page, HasSubstr("fail: different"));
  EXPECT_THAT(page, HasSubstr("decoder.layers.*.fc1.weight, 2: 3 of 100 elements differ, "
                              "max_delta 0.5"));
  EXPECT_THAT(page, HasSubstr("embedding.weight: 100 of 100 elements differ"));
  // Layer 10 of the group is the same; the group of fc2 has no difference and no row.
  EXPECT_THAT(page, HasSubstr("decoder.layers.*.fc1.weight, 10: 0 of 100 elements differ"));
  EXPECT_THAT(page, Not(HasSubstr("fc2.weight, 2")));
  EXPECT_THAT(page, HasSubstr("since nothing differs: 1 group."));
  EXPECT_THAT(page, HasSubstr("[2, 3]"));
  EXPECT_THAT(page, HasSubstr("<td class=\"heat h4\" title=\"decoder.layers.*.fc1.weight, 2"));
  EXPECT_THAT(page, HasSubstr("\">3%</td>")) << "not by colour alone";
  EXPECT_LT(page.find(">2</th>"), page.find(">10</th>")) << "numbers are in natural order";
}

TEST(DiffPage, the_sign_before_the_verdict_is_that_of_the_verdict) {
  struct Row {
    const char* sign;
    const char* words;
    DiffReport report;
  };
  Row rows[] = {{"\xe2\x9c\x93", "pass: same", some_report()},
                {"\xe2\x9c\x97", "fail: different", some_report()},
                {"?", "inconclusive: nothing was compared", {}}};
  rows[0].report.tensors = {tensor_of("embedding.weight", 0, 100)};
  for (const auto& [sign, words, report] : rows) {
    const std::string first = std::string(words).substr(0, std::string(words).find(':'));
    EXPECT_THAT(diff_page({}, report),
                HasSubstr("<span class=\"v " + first + "\"><span aria-hidden=\"true\">" + sign +
                          "</span> " + words));
  }
}

TEST(DiffPage, a_cell_that_could_not_be_compared_has_a_letter) {
  DiffReport report = some_report();
  report.tensors = {{.key = "layers.0.a", .verdict = DiffVerdict::kOnlyLeft},
                    {.key = "layers.0.b", .verdict = DiffVerdict::kOnlyRight},
                    {.key = "layers.0.c", .verdict = DiffVerdict::kShape},
                    {.key = "layers.0.d", .verdict = DiffVerdict::kDtype},
                    {.key = "layers.0.e", .verdict = DiffVerdict::kNotKnown, .reason = "EACCES"}};
  const std::string page = diff_page({}, report);
  for (const char* letter : {"\">A</td>", "\">B</td>", "\">s</td>", "\">t</td>", "\">?</td>"}) {
    EXPECT_EQ(count_of(letter, page), 1U) << letter;
  }
  EXPECT_THAT(page, HasSubstr("EACCES"));
}

TEST(DiffPage, says_what_was_left_out_and_never_passes_for_nothing) {
  DiffReport report;
  EXPECT_THAT(diff_page({}, report), HasSubstr("inconclusive: nothing was compared"));
  report = some_report();
  for (int i = 0; i < 700; ++i) {
    report.tensors.push_back(tensor_of("w" + std::to_string(i) + "x", 1, 2));
  }
  report.ignored_keys = 4;
  const std::string page = diff_page({.options = "--keys 'w' "}, report);
  EXPECT_THAT(page, HasSubstr("Not shown: 203 further rows"));
  EXPECT_THAT(page, HasSubstr("further groups."));
  EXPECT_THAT(page, HasSubstr("The options exclude 4 keys"));
}

TEST(DiffPage, shows_the_command_the_program_and_a_key_substitution) {
  DiffReport report;
  for (const std::string key : {"a", "b", "c", "d"}) {
    report.tensors.push_back({.key = "model." + key, .verdict = DiffVerdict::kOnlyLeft});
    report.tensors.push_back({.key = key, .verdict = DiffVerdict::kOnlyRight});
  }
  const std::string page = diff_page({.left = "a b", .right = "c", .options = "--keys w "}, report);
  EXPECT_THAT(page, HasSubstr("reprise diff --keys w &#39;a b&#39; c"));
  EXPECT_THAT(page, HasSubstr(version_line().substr(0, 10)));
  EXPECT_THAT(page, HasSubstr("4 keys of A are keys of B with &#39;model.&#39; before them"));
  EXPECT_THAT(page, HasSubstr("--rename"));
  EXPECT_THAT(diff_page({}, some_report()), Not(HasSubstr("--rename")));
}

TEST(DiffPage, text_of_a_checkpoint_never_becomes_a_part_of_the_page) {
  DiffReport report;
  const std::string awkward = "<script>x</script>\"'&";
  report.tensors = {tensor_of(awkward, 1, 2)};
  report.tensors[0].reason = awkward;
  report.objects = {{.key = awkward,
                     .verdict = DiffVerdict::kDifferent,
                     .differences = {{.path = awkward, .left = awkward, .right = awkward}}}};
  const std::string page =
      diff_page({.left = awkward, .right = awkward, .options = awkward}, report);
  EXPECT_EQ(count_of("<script>", page), 1U) << "the page's own";
  EXPECT_THAT(page, HasSubstr("&#60;script&#62;"));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

}  // namespace
}  // namespace reprise::cli
