// What the matrix of mutants says of mutants, judges and scenarios.

#include "reports/matrix.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace reprise::reports {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

/// Four scenarios; `alpha` is caught in two of them, `beta` and `gamma` in one each.
Matrix small() {
  return {.mutants = 3,
          .scenarios = {"cache/one", "cache/two[k=a/b]", "rerun/three", "rerun/four"},
          .rows = {{.mutant = "alpha",
                    .cells = "CC.n",
                    .caught = {{"cache/one", {"ZERO_FILL"}},
                               {"cache/two[k=a/b]", {"BIT_MISMATCH", "ZERO_FILL"}}}},
                   {.mutant = "beta",
                    .cells = "pCpb",
                    .caught = {{"cache/two[k=a/b]", {"STALE_PLAN"}}}},
                   {.mutant = "gamma",
                    .cells = "C.up",
                    .caught = {{"cache/one", {"BIT_MISMATCH", "ZERO_FILL"}}}}},
          .codes = {"BIT_MISMATCH", "RNG_DRIFT", "ZERO_FILL"}};
}

TEST(Matrix, where_every_mutant_is_caught_there_is_no_flaw) {
  EXPECT_THAT(flaws_of(small()), IsEmpty());
  EXPECT_EQ(small().caught(), 3U);
  EXPECT_EQ(small().count(Cell::kCaught), 4U);
  EXPECT_EQ(small().count(Cell::kNotAsked), 2U);
}

TEST(Matrix, an_uncalled_mutant_is_not_reached_and_a_pass_is_a_survivor) {
  Matrix matrix = small();
  matrix.rows[1].caught.clear();
  matrix.rows[1].cells = "n..n";
  EXPECT_THAT(flaws_of(matrix), ElementsAre("beta was not reached: no scenario called it"));
  EXPECT_FALSE(has_survivor(matrix));
  for (const auto* cells : {"np..", "n.pb"}) {
    matrix.rows[1].cells = cells;
    EXPECT_THAT(flaws_of(matrix), ElementsAre("beta survived a scenario that called it"));
    EXPECT_TRUE(has_survivor(matrix)) << cells;
  }
  for (const auto* cells : {"n..b", "u..."}) {
    matrix.rows[1].cells = cells;
    EXPECT_THAT(flaws_of(matrix),
                ElementsAre("beta was not judged: its runs broke down or were inconclusive"));
    EXPECT_FALSE(has_survivor(matrix)) << cells;
  }
}

TEST(Matrix, a_failure_without_a_mutant_is_a_flaw_but_not_run_is_none) {
  Matrix matrix = small();
  matrix.left_out["gpu"] = "not_run without a mutant: needs a GPU";
  EXPECT_THAT(flaws_of(matrix), IsEmpty());
  matrix.left_out["red"] = "fail without a mutant: zeros";
  EXPECT_THAT(flaws_of(matrix), ElementsAre("red: fail without a mutant: zeros"));
  EXPECT_THAT(failed_without_mutant(matrix), ElementsAre("red"));
}

TEST(Matrix, entries_that_contradict_each_other_are_flaws) {
  struct Case {
    const char* flaw;
    std::function<void(Matrix&)> spoil;
  };
  const std::vector<Case> cases = {
      {"no scenario was run", [](Matrix& m) { m.scenarios.clear(); }},
      {"a scenario occurs in it twice", [](Matrix& m) { m.scenarios[3] = m.scenarios[2]; }},
      {"it has 2 of 3 mutants", [](Matrix& m) { m.rows.pop_back(); }},
      {"it has 3 of 0 mutants", [](Matrix& m) { m.mutants = 0; }},
      {"beta occurs in it twice", [](Matrix& m) { m.rows[2] = m.rows[1]; }},
      {"beta has 3 cells for 4 scenarios", [](Matrix& m) { m.rows[1].cells.pop_back(); }},
      {"beta has a cell 'x'", [](Matrix& m) { m.rows[1].cells[3] = 'x'; }},
      {"beta is caught by cache/one in only one of two places",
       [](Matrix& m) { m.rows[1].cells[0] = 'C'; }},
      {"gamma is caught by cache/one in only one of two places",
       [](Matrix& m) { m.rows[2].cells[0] = 'p'; }},
      {"gamma is caught by a scenario that is not in the matrix",
       [](Matrix& m) { m.rows[2].caught["elsewhere"] = {"ZERO_FILL"}; }},
      {"gamma is caught by cache/one without a code",
       [](Matrix& m) { m.rows[2].caught["cache/one"].clear(); }},
  };
  for (const auto& [flaw, spoil] : cases) {
    Matrix matrix = small();
    spoil(matrix);
    EXPECT_THAT(flaws_of(matrix), Contains(flaw));
  }
}

TEST(Matrix, a_judge_is_alone_if_all_catches_of_a_mutant_have_its_code) {
  const auto worth = worth_of_codes(small());
  EXPECT_THAT(worth.at("STALE_PLAN").alone, ElementsAre("beta"));
  EXPECT_THAT(worth.at("ZERO_FILL").finds, ElementsAre("alpha", "gamma"));
  EXPECT_THAT(worth.at("ZERO_FILL").alone, IsEmpty()) << "BIT_MISMATCH finds both, too";
  EXPECT_THAT(worth.at("RNG_DRIFT").finds, IsEmpty());
  Matrix matrix = small();
  matrix.rows[0].caught["cache/two[k=a/b]"] = {"ZERO_FILL"};
  EXPECT_THAT(worth_of_codes(matrix).at("ZERO_FILL").alone, ElementsAre("alpha"));
  matrix.rows[0].caught["cache/two[k=a/b]"] = {"BIT_MISMATCH"};
  EXPECT_THAT(worth_of_codes(matrix).at("ZERO_FILL").alone, IsEmpty());
}

TEST(Matrix, lists_single_killers_and_scenarios_without_own_catches) {
  EXPECT_THAT(with_one_killer(small()),
              ElementsAre(Pair("beta", "cache/two[k=a/b]"), Pair("gamma", "cache/one")));
  EXPECT_THAT(catching_nothing(small()), ElementsAre("rerun/three", "rerun/four"));
  EXPECT_THAT(catching_nothing_alone(small()), IsEmpty());
  Matrix matrix = small();
  matrix.rows[2].cells[2] = 'C';
  matrix.rows[2].caught["rerun/three"] = {"ZERO_FILL"};
  EXPECT_THAT(with_one_killer(matrix), ElementsAre(Pair("beta", "cache/two[k=a/b]")));
  EXPECT_THAT(catching_nothing_alone(matrix), ElementsAre("cache/one", "rerun/three"));
  EXPECT_THAT(catching_nothing(matrix), ElementsAre("rerun/four"));
}

TEST(Matrix, the_family_of_a_scenario_is_its_folder) {
  EXPECT_EQ(family_of("cache/two[k=a/b]"), "cache");
  EXPECT_EQ(family_of("one"), "");
  EXPECT_EQ(family_of("a/b/c"), "a/b");
}

TEST(Matrix, the_page_has_each_finding) {
  const std::string page = to_page(small());
  EXPECT_THAT(page, HasSubstr("| mutants | 3 of 3 |"));
  EXPECT_THAT(page, HasSubstr("| pairs of a mutant and a scenario | 12 |"));
  EXPECT_THAT(page, HasSubstr("| STALE_PLAN | 1 | beta |"));
  EXPECT_THAT(page, HasSubstr("too:\n\n`BIT_MISMATCH`, `ZERO_FILL`\n"));
  EXPECT_THAT(page, HasSubstr("codes:\n\n`RNG_DRIFT`\n"));
  EXPECT_THAT(page, HasSubstr("| gamma | cache/one |"));
  EXPECT_THAT(page, HasSubstr("| mutant | cache | rerun |"));
  EXPECT_THAT(page, HasSubstr("| alpha | 2/2 |  |"));
  EXPECT_THAT(page, HasSubstr("| beta | 1/2 | 0/2 |"));
  EXPECT_THAT(page, HasSubstr("`rerun/three`, `rerun/four`"));
  EXPECT_THAT(page, Not(HasSubstr("What this does not show")));
  Matrix matrix = small();
  matrix.rows.pop_back();
  matrix.left_out["gpu/one"] = "not_run without a mutant: no GPU";
  EXPECT_THAT(to_page(matrix), HasSubstr("- it has 2 of 3 mutants"));
  EXPECT_THAT(to_page(matrix), HasSubstr("| gpu/one | not_run without a mutant: no GPU |"));
  matrix.left_out["red"] = "fail without a mutant: two lines\nand a | in them";
  EXPECT_THAT(to_page(matrix), HasSubstr("two lines\\nand a \\| in them |"));
}

}  // namespace
}  // namespace reprise::reports
