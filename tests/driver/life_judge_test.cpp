// Tests the judge that examines the evidence of all ranks. The judge relies on records alone.

#include "driver/judges/life_judge.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "tests/driver/good_life.hpp"

namespace reprise::driver {
namespace {

using test::good_life;

TEST(LifeJudge, a_table_of_records) {
  struct Row {
    std::string what;
    std::function<void(std::vector<RankRecord>&)> change;
    std::string first;  ///< the first finding; empty if there is none
  };
  const std::vector<Row> rows = {
      {"all is well", [](auto&) {}, ""},
      {"a replica differs at the second save",
       [](auto& r) { r[1].audits[1].items[0].hashes[1] = 8; },
       "FALSE_REPLICA: rank 0 and rank 1 hand [0:2] to the save as copies 0 and 1 of the same "
       "data, but their bytes differ; the first that differs is element [1] [rank 1, key w]"},
      {"the same although the save failed after it",
       [](auto& r) {
         for (auto& rank : r) rank.ending = Ending::kFailed;
         r[1].audits[1].items[0].hashes[0] = 8;
       },
       "FALSE_REPLICA"},
      {"two main copies", [](auto& r) { r[1].audits[0].items[0].replica = 0; }, "MULTI_WRITER"},
      {"no main copy", [](auto& r) { r[0].audits[0].items[0].replica = 1; }, "NO_WRITER"},
      {"a live key is not in the checkpoint that a plan from before wrote",
       [](auto& r) {
         r[0].saves[1].stored = {"b", "w"};
         r[1].saves[1].reused = true;
       },
       "STALE_PLAN: the job has it, but the checkpoint of step 5 does not: it was saved with an "
       "old plan [key a]"},
      {"the same without such a plan",
       [](auto& r) {
         r[0].saves[1].stored = {"b", "w"};
       },
       "KEYSET_ASYMMETRY"},
      {"a key that nobody has any more is in the checkpoint",
       [](auto& r) {
         r[0].saves[1].stored = {"a", "b", "c", "w"};
         r[0].saves[1].reused = true;
       },
       "STALE_PLAN: the job no longer has it"},
      {"a rank did not come to the save that another one ended",
       [](auto& r) {
         r[1].ending = Ending::kLost;
         r[1].saves.pop_back();
       },
       ""},
      {"a save ended well on one rank alone",
       [](auto& r) { r[1].saves[0].code = Code::kIo, r[1].saves[0].point.certain = false; },
       "VERDICT_DISAGREEMENT"},
      {"the same because a rank had died",
       [](auto& r) {
         r[1].saves[0].code = Code::kPeerFailed;
         r[0].ending = Ending::kLost;
       },
       ""},
      {"ranks read all that is stored, between them",
       [](auto& r) {
         r[0].loads[0].bytes_read = 60;
         r[1].loads[0].bytes_read = 40;
         r[0].loads[0].bytes_allowed = 100;
       },
       ""},
      {"a byte of it twice",
       [](auto& r) {
         r[0].loads[0].bytes_read = 60;
         r[1].loads[0].bytes_read = 41;
         r[0].loads[0].bytes_allowed = 100;
       },
       "READ_TWICE: the ranks of a load read 101 bytes of payload, but the checkpoint has 100"},
      {"the same where each may read for itself",
       [](auto& r) {
         r[0].loads[0].bytes_read = 60;
         r[1].loads[0].bytes_read = 41;
       },
       ""},
      {"ranks loaded different checkpoints", [](auto& r) { r[1].loads[0].step = 5; },
       "MIXED_GENERATION: ranks loaded different checkpoints: of step 3 and of step 5"},
      {"no main copy among the ranks that came to the save",
       [](auto& r) {
         r[0].ending = Ending::kFailed;
         r[0].audits.clear();
       },
       ""},
      {"common state differs", [](auto& r) { r[1].audits[0].common[0].hash = 2; },
       "COMMON_STATE_DIVERGES"},
      {"a stored key is not requested", [](auto& r) { r[1].loads[0].requested = {"w"}; },
       "KEYSET_ASYMMETRY: the checkpoint has it but no rank requests it [key b]"},
      {"but it is excused",
       [](auto& r) {
         r[1].loads[0].requested = {"w"};
         r[0].loads[0].excused = {"b"};
       },
       ""},
      {"a requested key is not stored",
       [](auto& r) {
         r[0].loads[0].stored = {"a", "w"};
       },
       "KEYSET_ASYMMETRY: a rank requests it but the checkpoint does not have it [key b]"},
      {"a rank did not come to the end of its load",
       [](auto& r) {
         r[1].ending = Ending::kFailed;
         r[1].loads.clear();
       },
       ""},
      {"nobody could read what is stored", [](auto& r) { r[0].loads[0].stored = {}; },
       "ORACLE_VACUOUS"},
      {"a tensor that no rank has",
       [](auto& r) {
         r[1].absent = {"a", "b"};
       },
       "KEYSET_ASYMMETRY: the uninterrupted job has it but no rank of this one does [key b]"},
  };
  for (const auto& row : rows) {
    LifeRecord life = good_life();
    row.change(life.ranks);
    const Findings findings = judge_life(life);
    std::ostringstream first;
    if (!findings.empty()) first << findings.front();
    EXPECT_EQ(first.str().substr(0, row.first.size()), row.first) << row.what;
    EXPECT_EQ(findings.empty(), row.first.empty()) << row.what << ": " << first.str();
  }
}

TEST(LifeJudge, evidence_survives_the_record_s_file) {
  RankRecord record = good_life().ranks[0];
  record.audits[0].items.push_back({"rng/shard_0_2", {}, 1, {0xfedcba9876543210ULL}});
  record.audits[0].items.push_back({"m", {{1, 0, 2}, {3, 1, 4}}, 2, {1, 2, 3}});
  const RankRecord read = parse_record(to_json(record), "r.json");
  EXPECT_EQ(read.audits, record.audits);
  EXPECT_EQ(read.loads, record.loads);
  EXPECT_EQ(read.absent, record.absent);
}

}  // namespace
}  // namespace reprise::driver
