// Tests how records of a life are read: strictly, except where a crash cut them.
#include "driver/watch/life_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "driver/watch/watch_run.hpp"
#include "reports/read_error.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

const std::string kStart = R"({"what":"start","version":1,"rank":0,"world":2,"pid":7})"
                           "\n";

TEST(LifeRecord, a_cut_last_line_is_left_out_and_others_are_refused) {
  const auto torn = parse_recording(kStart + R"({"what":"held","st)", "f");
  EXPECT_TRUE(torn.torn);
  EXPECT_THAT(torn.held, IsEmpty());
  const auto parse = [](const std::string& text) { return [text] { parse_recording(text, "f"); }; };
  EXPECT_THAT(parse(kStart + "{\"what\":\"held\",\"st\n"),
              ThrowsMessage<reports::ReadError>(HasSubstr("f: line 2")));
  EXPECT_THAT(parse("{\"what\":\"end\",\"step\":1}\n"),
              ThrowsMessage<reports::ReadError>(HasSubstr("begin with a line of kind start")));
  EXPECT_THAT(parse(R"({"what":"start","version":2,"rank":0})"
                    "\n"),
              ThrowsMessage<reports::ReadError>(HasSubstr("version 2")));
  EXPECT_THAT(parse(""), ThrowsMessage<reports::ReadError>(HasSubstr("no whole line")));
}

TEST(LifeRecord, a_state_that_is_not_light_is_preferred_and_the_end_is_apart) {
  const auto rank = parse_recording(
      kStart + R"({"what":"held","step":3,"why":"save","names":{"param.w":"#f[1]:1"}})"
               "\n"
               R"({"what":"held","step":3,"why":"every","light":true,"names":{}})"
               "\n"
               R"({"what":"held","step":4,"why":"every","light":true,"names":{}})"
               "\n"
               R"({"what":"held","step":4,"why":"end","at":"end","names":{"param.w":"#f[1]:2"}})"
               "\n",
      "f");
  EXPECT_FALSE(rank.held_at(3)->light);
  EXPECT_TRUE(rank.held_at(4)->light);
  EXPECT_EQ(rank.held_at(5), nullptr);
  EXPECT_EQ(rank.held_at_end()->names.size(), 1U);
}

TEST(LifeRecord, a_save_is_complete_by_path_and_unknown_lines_are_not_judged) {
  const auto rank = parse_recording(kStart + R"({"what":"save","step":3,"path":"./a"})"
                                             "\n"
                                             R"({"what":"save","step":6,"path":"./b"})"
                                             "\n"
                                             R"({"what":"saved","step":7,"path":"./a"})"
                                             "\n"
                                             R"({"what":"later"})"
                                             "\n",
                                    "f");
  EXPECT_TRUE(rank.saves[0].complete);
  EXPECT_FALSE(rank.saves[1].complete);
  EXPECT_TRUE(rank.not_judged.contains("later"));
}

TEST(LifeRecord, of_two_processes_of_a_rank_only_one_may_have_trained) {
  const contracts::TemporaryDirectory directory;
  const auto put = [&](const std::string& name, const std::string& text) {
    std::ofstream(directory.path() + "/" + name) << text;
  };
  const std::string trained = kStart + "{\"what\":\"held\",\"step\":0,\"names\":{}}\n";
  put("rank-0-1.jsonl", kStart);
  put("rank-0-2.jsonl", trained);
  put("notes.txt", "x");
  const LifeRecording one = read_recordings(directory.path());
  EXPECT_THAT(one.flaws, IsEmpty());
  EXPECT_EQ(one.ranks.at(0).file, "rank-0-2.jsonl");
  put("rank-0-3.jsonl", trained);
  EXPECT_THAT(read_recordings(directory.path()).flaws,
              ElementsAre(HasSubstr("two processes called themselves rank 0")));
  put("rank-1-4.jsonl", kStart + R"({"what":"hook_error","where":"w","error":"e"})"
                                 "\n");
  EXPECT_EQ(read_recordings(directory.path()).flaws.size(), 2U) << "a hook that failed is told";
}

TEST(LifeRecord, elements_of_a_tensor_are_those_of_its_shape) {
  EXPECT_EQ(elements_in("#float32[2, 3]:0123456789abcdef"), 6U);
  EXPECT_EQ(elements_in("#float32[]:0123456789abcdef"), 1U);
  EXPECT_EQ(elements_in("#float32[0,4]:0123456789abcdef"), 0U);
  EXPECT_EQ(elements_in("#object:0123456789abcdef"), std::nullopt);
  EXPECT_EQ(elements_in("=[1]"), std::nullopt);
}

struct Kill {
  std::vector<std::int64_t> saves;
  std::int64_t steps;
  KillMoment moment;
  std::optional<std::int64_t> chosen;
  bool asynchronous = false;  ///< the saves are
};

TEST(ChooseKill, is_one_step_after_the_last_save_that_leaves_steps_to_compare) {
  const std::vector<Kill> rows = {{{3, 6, 9, 12}, 12, KillMoment::kBetween, 10},
                                  {{12}, 12, KillMoment::kBetween, {}},
                                  {{11, 12}, 12, KillMoment::kBetween, 12},
                                  {{}, 12, KillMoment::kBetween, {}},
                                  {{3, 6, 9, 12}, 12, KillMoment::kSaveBegins, 9},
                                  {{9}, 12, KillMoment::kSaveBegins, {}},
                                  {{9, 12}, 12, KillMoment::kSaveWritten, 9},
                                  {{3, 6}, 12, KillMoment::kAsynchronous, 6, true},
                                  {{3, 6}, 12, KillMoment::kAsynchronous, {}}};
  for (const auto& row : rows) {
    RankRecording rank;
    rank.steps[row.steps] = {};
    for (const auto step : row.saves) {
      rank.saves.push_back(
          {.step = step, .asynchronous = row.asynchronous, .leaves = {{"w", "#f[1]:1"}}});
      rank.saves.push_back({.step = 11, .leaves = {{"epoch", "=1"}}});  // holds no tensor
    }
    EXPECT_EQ(choose_kill({.ranks = {{0, rank}}}, row.moment), row.chosen) << row.steps;
  }
}

}  // namespace
}  // namespace reprise::driver
