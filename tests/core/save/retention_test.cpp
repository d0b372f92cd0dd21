// Tests which checkpoints retention removes. Uses a table of cases, and checks invariants in every
// small world.

#include "core/save/retention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace reprise {
namespace {

/// One letter for each iteration, from 1 on: nothing ('.'), unfinished, whole, known to be damaged.
constexpr std::string_view kLetters = ".uwd";

std::vector<Generation> present(const std::string& world) {
  std::vector<Generation> found;
  for (std::size_t i = 0; i < world.size(); ++i) {
    if (world[i] == '.') continue;
    found.push_back({Step{static_cast<std::int64_t>(i) + 1}, "iter", world[i] != 'u'});
  }
  return found;
}

Kept kept(const std::string& world, std::int64_t newest, std::int32_t count) {
  Kept kept{Step{newest}, count, {}};
  for (std::size_t i = 0; i < world.size(); ++i) {
    if (world[i] == 'd') kept.damaged.push_back(Step{static_cast<std::int64_t>(i) + 1});
  }
  return kept;
}

std::string digits(const std::vector<Step>& steps) {
  std::string text;
  for (const Step step : steps) text += std::to_string(step.value);
  return text;
}

TEST(Retention, a_table_of_what_goes) {
  struct Row {
    const char* world;
    std::int64_t newest;
    std::int32_t count;
    const char* gone;
  };
  const Row rows[] = {
      {"w", 1, 1, ""},      {"ww", 2, 1, "1"},     {"ww", 2, 2, ""},
      {"www", 3, 2, "1"},   {"w.w.w", 5, 1, "13"}, {"wu.w", 4, 1, "1"},  // unfinished ones stay
      {"wuu", 1, 1, ""},                                                 //
      {"www", 2, 1, "1"},    // newer than the tracker: they stay, and do not count
      {"www", 2, 2, ""},     //
      {"wdw", 3, 2, ""},     // known to be damaged: does not count as one to keep
      {"wdw", 3, 1, "12"},   // but is removed together with others of its age
      {"wdww", 4, 2, "12"},  //
      {"wwdw", 4, 2, "1"},   //
      {"wwdw", 4, 3, ""},    //
      {"ddw", 3, 3, ""},     //
      {"wwd", 2, 2, ""},     // newer than the tracker: stays
      {"wd", 2, 1, "1"},     // the new save makes it whole
      {"wd", 2, 2, ""},      //
  };
  for (const Row& row : rows) {
    EXPECT_EQ(digits(outdated(present(row.world), kept(row.world, row.newest, row.count))),
              row.gone)
        << row.world << ", the tracker names " << row.newest << ", keep " << row.count;
  }
}

TEST(Retention, several_copies_of_one_step_are_one_checkpoint) {
  std::vector<Generation> copies = present("www");
  copies.insert(copies.begin() + 1, copies[1]);  // step 2 now occurs twice
  EXPECT_EQ(digits(outdated(copies, kept("www", 3, 2))), "1");
  EXPECT_EQ(digits(outdated(copies, kept("www", 3, 1))), "12");
}

using Rule = std::function<std::vector<Step>(const std::vector<Generation>&, const Kept&)>;

/// Applies the rule to this world. Adds a complaint for each checkpoint that the rule wrongly
/// removes or wrongly keeps.
void complain(const Rule& rule, const std::string& world, const Kept& kept,
              std::set<std::string>& complaints) {
  const std::string gone = digits(rule(present(world), kept));
  std::string good;  // whole checkpoints no newer than the tracker's, as digits
  for (std::size_t i = 0; i < world.size(); ++i) {
    const char digit = static_cast<char>('1' + i);
    const bool goes = gone.find(digit) != std::string::npos;
    const auto step = static_cast<std::int64_t>(i) + 1;
    const char what = step == kept.newest.value ? 'w' : world[i];
    if (what == '.' && goes) complaints.insert("what is not there goes");
    if (what == 'u' && goes) complaints.insert("what is unfinished goes");
    if (goes && step > kept.newest.value) complaints.insert("what is newer goes");
    if (what == 'w' && step <= kept.newest.value) good += digit;
  }
  const auto count = static_cast<std::size_t>(kept.count);
  const char oldest = good.size() < count ? '0' : good[good.size() - count];
  for (std::size_t i = 0; i < world.size(); ++i) {
    const char digit = static_cast<char>('1' + i);
    const auto step = static_cast<std::int64_t>(i) + 1;
    if (world[i] != 'd' || step >= kept.newest.value) continue;
    const bool goes = gone.find(digit) != std::string::npos;
    if (goes != (digit < oldest))
      complaints.insert(goes ? "a damaged one goes early" : "a damaged one stays");
  }
  for (; good.size() > static_cast<std::size_t>(kept.count); good.erase(0, 1)) {
    if (gone.find(good.front()) == std::string::npos) complaints.insert("too many stay");
  }
  if (good.find_first_of(gone) != std::string::npos) complaints.insert("a good one goes");
}

/// Returns the complaints in all worlds of up to five iterations. Adds the number of worlds to
/// `worlds`.
std::set<std::string> complaints(const Rule& rule, int* worlds = nullptr) {
  std::set<std::string> all;
  for (int number = 0; number < 1024; ++number) {
    std::string world;
    for (int i = 0; i < 5; ++i) world += kLetters[static_cast<std::size_t>(number >> (2 * i)) % 4];
    for (std::int64_t newest = 1; newest <= 5; ++newest) {
      const char named = world[static_cast<std::size_t>(newest) - 1];
      if (named != 'w' && named != 'd') continue;  // the tracker always names a completed save
      for (const std::int32_t count : {1, 2, 3, 9}) {
        complain(rule, world, kept(world, newest, count), all);
        if (worlds != nullptr) ++*worlds;
      }
    }
  }
  return all;
}

TEST(Retention, keeps_the_last_good_ones_and_drops_older_in_all_small_worlds) {
  int worlds = 0;
  EXPECT_EQ(complaints(outdated, &worlds), std::set<std::string>{});
  EXPECT_EQ(worlds, 5 * 2 * 256 * 4);
}

TEST(Retention, wrong_rules_are_seen_in_some_small_world) {
  struct Row {
    Rule rule;
    const char* complaint;
  };
  const Row rows[] = {
      {[](const auto&, const auto&) { return std::vector<Step>{}; }, "too many stay"},
      {[](const auto& all, const auto& kept) {
         return outdated(all, {kept.newest, kept.count, {}});
       },
       "a good one goes"},
      {[](const auto& all, const auto& kept) {
         return outdated(all, {kept.newest, kept.count + 1, kept.damaged});
       },
       "too many stay"},
      {[](const auto& all, const auto& kept) {
         return outdated(all, {Step{9}, kept.count, kept.damaged});
       },
       "what is newer goes"},
      {[](auto all, const auto& kept) {
         for (auto& one : all) one.committed = true;
         return outdated(all, kept);
       },
       "a good one goes"},
      {[](const auto& all, const auto& kept) {
         auto gone = outdated(all, kept);
         for (const auto& one : all) {
           if (one.committed && one.step < kept.newest) gone.push_back(one.step);
         }
         return gone;
       },
       "a damaged one goes early"},
      {[](auto all, const auto& kept) {
         std::erase_if(all, [&](const Generation& one) {
           return std::find(kept.damaged.begin(), kept.damaged.end(), one.step) !=
                  kept.damaged.end();
         });
         return outdated(all, kept);
       },
       "a damaged one stays"},
  };
  for (const Row& row : rows) {
    EXPECT_TRUE(complaints(row.rule).contains(row.complaint)) << row.complaint;
  }
}

}  // namespace
}  // namespace reprise
