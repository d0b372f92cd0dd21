#include "driver/judges/content_judge.hpp"

#include <gtest/gtest.h>

#include "core/checkpoint/checkpoint.hpp"
#include "core/save/commit_protocol.hpp"
#include "properties/finding_code.hpp"
#include "sim/faults/at_rest.hpp"
#include "tests/driver/small_scenario.hpp"

namespace reprise::driver {
namespace {

using test::Rig;

Scenario saved_once() {
  return test::scenario_of({{"dp2", {TrainAction{1}, SaveAction{}}}, {"dp2", {TrainAction{1}}}});
}

/// A life that saved once, and its store.
struct Saved {
  Rig rig{saved_once()};
  LifeRecord life = rig.run(0);

  Findings judged() { return judge_contents(rig.judged(), life); }
  Checkpoint checkpoint() {
    return Checkpoint::open(rig.store(),
                            CommitTarget::iteration(kCheckpointRoot, Step{1}).directory);
  }
  /// Flips the last byte of the elements in the tensor's first chunk.
  void flip(const std::string& key) {
    Checkpoint stored = checkpoint();
    for (const auto& tensor : stored.catalog().tensors) {
      if (tensor.key != key) continue;
      const StoredChunk& chunk = tensor.chunks.front();
      const TensorItem item = stored.tensor_item(tensor, chunk);
      sim::flip_bit(rig.store(), stored.path_of(chunk.file),
                    chunk.range.offset + item.data_offset + item.data_bytes - 1);
    }
  }
};

TEST(ContentJudge, what_was_handed_over_is_what_stands) { EXPECT_TRUE(Saved().judged().empty()); }

TEST(ContentJudge, a_changed_stored_element_names_key_step_and_saving_rank) {
  for (const std::int32_t rank : {0, 1}) {
    Saved saved;
    std::string key;
    for (const auto& item : saved.life.ranks[static_cast<std::size_t>(rank)].audits[0].items) {
      // True if this rank has the tensor's first chunk.
      const bool first = item.box.ndim() > 0 && item.box.offset == Dims::filled(item.box.ndim(), 0);
      const bool mine = item.replica == 0 && item.box.ndim() > 0;
      if (mine && (first == (rank == 0))) key = item.key;
    }
    ASSERT_FALSE(key.empty());
    saved.flip(key);
    const Findings findings = saved.judged();
    ASSERT_EQ(findings.size(), 1U) << key;
    EXPECT_EQ(findings[0].code, judged::kBitMismatch);
    EXPECT_EQ(findings[0].key, key);
    EXPECT_NE(findings[0].text.find("rank " + std::to_string(findings[0].rank->value)),
              std::string::npos)
        << findings[0].text;
    EXPECT_NE(findings[0].text.find("of step 1"), std::string::npos) << findings[0].text;
  }
}

TEST(ContentJudge, beside_training_that_is_a_torn_snapshot) {
  Saved saved;
  saved.flip("embedding.word_embeddings.weight");
  for (auto& rank : saved.life.ranks) rank.saves[0].point.beside = 1;
  const Findings findings = saved.judged();
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].code, judged::kTornSnapshot);
}

TEST(ContentJudge, the_verdict_is_for_the_saving_life_and_names_one_rank) {
  Saved saved;
  // Pretends that rank 1 passed other bytes to the save.
  for (auto& item : saved.life.ranks[1].audits[0].items) {
    if (!item.key.starts_with("optimizer.") || item.box.ndim() == 0) continue;
    item.hashes.front() ^= 1;
    break;
  }
  saved.rig.end(0, saved.life);
  std::vector<LifeRecord> lives = {saved.life, saved.rig.run(1)};
  saved.rig.end(1, lives[1]);
  lives[1].ranks[0].first_difference = reports::FirstDifference{.rank = 0, .key = "late"};
  lives[0].ranks[1].first_difference = reports::FirstDifference{.rank = 1, .key = "early"};
  const auto result = judge(saved.rig.scenario(), lives);
  EXPECT_EQ(result.verdict, reports::Verdict::kFail);
  EXPECT_EQ(result.code, "BIT_MISMATCH") << result.reason;
  EXPECT_NE(result.reason.find("rank 1 passed it to the save of step 1, but the committed "
                               "checkpoint has different bits"),
            std::string::npos)
      << result.reason;
  EXPECT_NE(result.reason.find("first difference, on rank 1: early"), std::string::npos)
      << result.reason;
}

TEST(ContentJudge, a_store_that_lied_is_another_judges_business) {
  Saved saved;
  saved.flip("embedding.word_embeddings.weight");
  sim::FaultState lie;
  lie.spec.kind = sim::FaultKind::kFlipWrite;
  lie.fired = true;
  saved.life.ranks[0].faults = {lie};
  EXPECT_TRUE(saved.judged().empty());
}

}  // namespace
}  // namespace reprise::driver
