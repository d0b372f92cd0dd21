// Tests mutants of the kept plan. An error in it usually shows only after several saves in
// one life. Each mutant therefore has a script of saves and training steps.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "sim/job/job.hpp"
#include "sim/mutants/mutants.hpp"
#include "sim/world/world.hpp"

namespace reprise::sim::cache_mutants_test {
namespace {

/// One step that all ranks do together.
struct Act {
  enum class What : std::uint8_t { kTrain, kSave } what = What::kSave;
  SaveParts parts = {};
  const char* kind = "training";
  bool fails = false;  ///< makes the save fail, by giving the ranks different common states
};

const Act kTrain{.what = Act::What::kTrain};
const Act kSave{};
const Act kNoRandom{.parts = {.random = false}};
const Act kWeights{.parts = {.optimizer = false}};
const Act kExport{.parts = {.optimizer = false}, .kind = "weights"};
const Act kFailing{.parts = {.random = false}, .fails = true};

struct Row {
  std::string_view mutant;
  std::vector<Act> shown;
  std::vector<Act> hidden;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"distribution-cache-key", {kWeights, kTrain, kSave}, {kSave, kTrain, kSave, kTrain, kSave}},
      {"distribution-cache-key/verify-off",
       {kWeights, kTrain, kSave},
       {kSave, kTrain, kSave, kTrain, kSave}},
      {"plan-cache-after-failed-validation",
       {kSave, kFailing, kTrain, kSave},
       {kSave, kNoRandom, kTrain, kSave}},
      {"plan-cache-shared-key", {kSave, kTrain, kExport}, {kSave, kTrain, kSave}},
      {"rerun-stale-plan/no-signature", {kNoRandom, kTrain, kSave}, {kSave, kTrain, kSave}},
  };
  return all;
}

/// Runs a script and collects its findings by code.
class Script {
 public:
  Script(std::vector<Act> acts, const Policies& policies)
      : acts_(std::move(acts)), policies_(policies) {}

  std::set<std::string> run() {
    World world({.world_size = kLayout.world_size()}, store_);
    const RunResult result = world.run([this](Ports& ports, GlobalRank) { live(ports); });
    for (const auto& rank : result.ranks) {
      if (rank.end == RankEnd::kReturned) continue;
      verdicts_.insert(rank.error ? std::string(name_of(rank.error->code())) : rank.message);
    }
    return verdicts_;
  }

 private:
  static const Layout kLayout;

  void live(Ports& ports) {
    TrainingJob job({.makeup = {.model = "moe-tiny", .layout = kLayout}}, ports.fabric,
                    policies_.job);
    const auto memory = std::make_shared<JobMemory>();
    for (const Act& act : acts_) {
      switch (act.what) {
        case Act::What::kTrain:
          job.step();
          break;
        case Act::What::kSave:
          save(act, job, ports, memory);
          break;
      }
    }
  }

  void save(const Act& act, TrainingJob& job, Ports& ports,
            const std::shared_ptr<JobMemory>& memory) {
    StateDict state = job.state(act.parts);
    if (act.fails && job.rank() == GlobalRank{1}) state.common = Dict{};
    SaveOptions options;
    options.directory = "run";
    options.step = job.iteration().value;
    options.structure = policies_.cache_of(act.kind);
    try {
      sim::save(policies_, ports, job.world_group(), state, options, memory);
    } catch (const Error& error) {
      if (!act.fails || error.code() != Code::kCommonStateDiverges) throw;
      if (policies_.save_failed != nullptr) {
        policies_.save_failed(memory->plans[options.structure], *job.world_group(), state);
      }
      return;
    }
    Checkpoint stored = Checkpoint::open(ports.store, "run");
    for (const auto& leaf : job.live_state(act.parts).tensors) {
      if (stored.catalog().tensor(leaf.key) == nullptr) verdicts_.insert("STALE_PLAN");
    }
    for (const auto& leaf : job.live_state(act.parts).objects) {
      const auto key = stored_key(leaf);
      if (stored.catalog().object(key) == nullptr) verdicts_.insert("STALE_PLAN");
    }
  }

  std::vector<Act> acts_;
  Policies policies_;
  SimStore store_;
  std::set<std::string> verdicts_;
};

const Layout Script::kLayout = parse_layout("tp2 dp2");

std::string text_of(const std::set<std::string>& verdicts) {
  std::string text;
  for (const auto& verdict : verdicts) text += verdict + " ";
  return text;
}

std::set<std::string> verdicts_with(std::string_view mutant, const std::vector<Act>& acts) {
  Policies policies;
  mutant_named(mutant).apply(policies);
  return Script(acts, policies).run();
}

TEST(CacheMutants, are_caught_as_they_say_where_they_show_and_nowhere_else) {
  for (const Row& row : rows()) {
    for (const auto* acts : {&row.shown, &row.hidden}) {
      const auto without = Script(*acts, {}).run();
      EXPECT_TRUE(without.empty()) << row.mutant << ": " << text_of(without);
    }
    const auto& caught_as = mutant_named(row.mutant).caught_as;
    const auto verdicts = verdicts_with(row.mutant, row.shown);
    EXPECT_TRUE(std::any_of(
        caught_as.begin(), caught_as.end(),
        [&](const auto& code) { return verdicts.contains(std::string(name_of(code))); }))
        << row.mutant << ": " << text_of(verdicts);
    EXPECT_EQ(verdicts.size(), 1U) << row.mutant << ": " << text_of(verdicts);
    const auto hidden = verdicts_with(row.mutant, row.hidden);
    EXPECT_TRUE(hidden.empty()) << row.mutant << ": " << text_of(hidden);
  }
}

/// Two independent checks detect a plan that was made for another structure. Each check works even
/// if the other is disabled.
TEST(CacheMutants, a_stale_plan_is_refused_by_signature_and_by_what_it_lacks) {
  for (const bool signature : {true, false}) {
    Policies policies;
    mutant_named("rerun-stale-plan/no-signature").apply(policies);
    const CacheSeams right;
    if (signature) {
      policies.save.cache.fits = right.fits;
    } else {
      policies.save.cache.unplanned = right.unplanned;
    }
    const auto verdicts = Script({kNoRandom, kTrain, kSave}, policies).run();
    EXPECT_EQ(text_of(verdicts), signature ? "" : "STALE_PLAN ");
  }
}

}  // namespace
}  // namespace reprise::sim::cache_mutants_test
