// Tests mutants of the rerun machine. Each test runs two lives with the real engine, once under the
// mutant and once under the correct decisions, and compares the results.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "properties/inventory.hpp"
#include "properties/replica_audit.hpp"
#include "sim/job/job.hpp"
#include "sim/mutants/mutants.hpp"
#include "sim/world/world.hpp"

namespace reprise::sim::rerun_mutants_test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kSpike = 1e12;

/// A bad result in the third iteration.
struct Bad {
  std::int32_t rank = 1;
  double value = kNaN;
  bool again = true;  ///< true if the re-run on the same device gives the bad result, too
};

/// The settings of two lives. The first life trains, saves twice and fails. The second life loads
/// the newest checkpoint of the first.
struct Story {
  std::vector<Bad> bad = {{}};
  const char* layout = "tp2 dp2";
  const char* next_layout = "";  ///< layout of the second life; empty if unchanged
  bool same_device = false;
  RerunMode next_mode = RerunMode::kValidateResults;
  const char* model = "gpt-tiny";
  bool told = true;  ///< true if the second life's log mentions an earlier restart
  RerunMode mode = RerunMode::kValidateResults;
};

const Story kFault{};
const Story kTransient{.bad = {{.again = false}}};
const Story kMild{.bad = {{.value = kSpike, .again = false}}};
const Story kNothing{.bad = {}};
const Story kDisabled{.next_mode = RerunMode::kDisabled};
const Story kNeverOn{.bad = {}, .next_mode = RerunMode::kDisabled, .mode = RerunMode::kDisabled};

struct Row {
  std::string_view mutant;
  std::string_view code;
  Story shown;
  Story hidden;
};

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.mutant; }

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"rerun-batch-read-twice", "DATA_STREAM_SKIP", kDisabled, kNothing},
      {"rerun-batch-read-twice/never", "DATA_STREAM_SKIP", kDisabled, kNothing},
      {"rerun-inplace-checkpoint", "ILLEGAL_STATE_PERSISTED", kTransient, kFault},
      {"rerun-inplace-checkpoint/unguarded", "ILLEGAL_STATE_PERSISTED", kTransient, kFault},
      {"rerun-pending-despite-disabled", "VERDICT_DISAGREEMENT", kDisabled, kFault},
      {"rerun-precedence-swapped",
       "VERDICT_DISAGREEMENT",
       {.bad = {{.rank = 1}, {.rank = 2, .value = kSpike}}},
       kFault},
      {"rerun-restart-loop", "VERDICT_DISAGREEMENT", kFault, {.told = false}},
      {"rerun-restored-by-global-rank",
       "VERDICT_DISAGREEMENT",
       {.next_layout = "tp2 dp2 order dp-tp"},
       {.next_layout = "tp4"}},
      {"rerun-restored-by-global-rank",
       "VERDICT_DISAGREEMENT",
       {.layout = "dp4 ep2", .next_layout = "dp4", .model = "moe-tiny"},
       kFault},
      {"rerun-rng-not-restored", "RNG_DRIFT", kMild, kNothing},
      {"rerun-rng-not-restored/device", "RNG_DRIFT", kMild, kNothing},
      {"rerun-rng-not-restored/tracker", "RNG_DRIFT", kMild, kNothing},
      {"rerun-rng-not-restored/fault-save", "RNG_DRIFT", kDisabled, kMild},
      {"rerun-stale-plan", "NOT_STORED", kFault, kNothing},
      {"rerun-stale-plan/no-sentinel", "VERDICT_DISAGREEMENT", kFault, kNothing},
      {"rerun-state-declared-replica", "FALSE_REPLICA", kFault, kNeverOn},
      {"strict-idle-rerun", "KEYSET_ASYMMETRY", kNothing, kNeverOn},
  };
  return all;
}

std::string text_of(const std::set<std::string>& verdicts) {
  std::string text;
  for (const auto& verdict : verdicts) text += verdict + " ";
  return text;
}

/// Maps a code and a rank to a text that describes what was observed on the rank. If the text
/// differs from the correct one, the code names the defect.
using Shown = std::map<std::pair<std::string, GlobalRank>, std::string>;
constexpr const char* kError = "an error of this code";

class Telling {
 public:
  Telling(const Story& story, const Policies& policies) : story_(story), policies_(policies) {}

  Shown tell() {
    live(story_.layout, [this](Ports& ports) { first(ports); });
    const bool left = shown_.count({kError, {}}) == 0;
    const char* next = *story_.next_layout == '\0' ? story_.layout : story_.next_layout;
    if (left) live(next, [this](Ports& ports) { second(ports); });
    for (const auto& [save, pages] : pages_) {
      for (const auto& finding : judge_replicas(pages, Pages::kAll)) {
        say(name_of(finding.code), {}, finding.text);
      }
    }
    return shown_;
  }

 private:
  void live(const char* layout, const std::function<void(Ports&)>& rank_main) {
    World world({.world_size = parse_layout(layout).world_size()}, store_);
    const RunResult result = world.run([&](Ports& ports, GlobalRank) { rank_main(ports); });
    for (const auto& rank : result.ranks) {
      if (rank.end == RankEnd::kReturned) continue;
      ASSERT_TRUE(rank.error.has_value()) << rank.message;
      shown_[{kError, {}}] = name_of(rank.error->code());
    }
  }

  JobConfig config(const char* layout, GlobalRank rank, bool again) const {
    JobConfig config{.makeup = {.model = story_.model, .layout = parse_layout(layout)},
                     .training = {.seed = 7}};
    const bool same = !again || story_.same_device;
    config.rerun.mode = again ? story_.next_mode : story_.mode;
    config.hardware.device = (same ? "first:" : "second:") + std::to_string(rank.value);
    config.rerun.options.large.samples = 1;
    if (again && story_.told) config.rerun.options.log = {restart_line("first:0", "1", {0}, 3)};
    config.rerun.result = [bad = story_.bad, rank, same](const ResultCall& call, double right) {
      for (const auto& one : bad) {
        if (one.rank != rank.value || call.iteration != 3 || call.call != 0 || !same) continue;
        if (call.run == 0 || one.again) return one.value;
      }
      return right;
    };
    return config;
  }

  void first(Ports& ports) {
    const GlobalRank rank = ports.fabric.rank();
    TrainingJob job(config(story_.layout, rank, false), ports.fabric, policies_.job);
    const auto memory = std::make_shared<JobMemory>();
    job.step();
    save(job, ports, memory, Step{1});
    job.step();
    save(job, ports, memory, Step{2});
    const StepOutcome outcome = job.advance();
    tell_of(job, outcome, "the first life");
    if (!outcome.exit || outcome.exit->save) save(job, ports, memory, Step{3});
    say("VERDICT_DISAGREEMENT", rank,
        std::to_string(memory->plans["training"].replans) + " plans again");
  }

  void save(TrainingJob& job, Ports& ports, const std::shared_ptr<JobMemory>& memory, Step nth) {
    const StateDict saved = job.state();
    const auto asked = keys_of(job.load_template());
    for (const auto& finding :
         judge_inventory(keys_of(job.live_state()), keys_of(saved), asked, {}))
      say(name_of(finding.code), job.rank(), finding.text);
    pages_[nth].push_back(audit_page(job.rank(), nth, saved));
    SaveOptions options;
    options.directory = "run";
    options.step = job.iteration().value;
    options.structure = policies_.cache_of("training");
    sim::save(policies_, ports, job.world_group(), saved, options, memory);
  }

  void second(Ports& ports) {
    const GlobalRank rank = ports.fabric.rank();
    const char* layout = *story_.next_layout == '\0' ? story_.layout : story_.next_layout;
    TrainingJob job(config(layout, rank, true), ports.fabric, policies_.job);
    LoadOptions options;
    options.directory = "run";
    LoadRequest request;
    const auto ask = [&](const Candidate& offered) {
      request = job.load_request({offered.common, &offered.catalog});
      return Wanted{&request.wanted, request.excused};
    };
    load(ports, job.world(), options, ask, policies_.load);
    job.take(request.wanted);
    for (const auto& note : request.notes) say("VERDICT_DISAGREEMENT", rank, note);
    for (int step = 0; step < 2; ++step) {
      const StepOutcome outcome = job.advance();
      tell_of(job, outcome, "the second life");
      if (outcome.exit) return;
    }
  }

  void tell_of(TrainingJob& job, const StepOutcome& outcome, const std::string& life) {
    const GlobalRank rank = job.rank();
    say("VERDICT_DISAGREEMENT", rank,
        outcome.exit ? life + " leaves with " + std::to_string(outcome.exit->code) : life);
    for (const auto& one : job.applied_samples()) {
      say("DATA_STREAM_SKIP", rank, std::to_string(one.samples.first));
    }
    for (const auto& object : job.model_space().objects) {
      std::ostringstream text;
      text << object.value;
      say("RNG_DRIFT", rank, text.str());
    }
  }

  void say(std::string_view code, GlobalRank rank, const std::string& text) {
    shown_[{std::string(code), rank}] += text + "\n";
  }

  Story story_;
  Policies policies_;
  SimStore store_;
  std::map<Step, std::vector<AuditPage>> pages_;  ///< audit pages of each save
  Shown shown_;
};

/// Runs the story twice: under the mutant and under the correct decisions. Returns the code of each
/// difference. An error is returned under its own code.
std::set<std::string> verdicts_with(std::string_view mutant, const Story& story) {
  Policies wrong;
  mutant_named(mutant).apply(wrong);
  const Shown right = Telling(story, {}).tell();
  EXPECT_EQ(right.count({kError, {}}), 0U);
  std::set<std::string> verdicts;
  for (const auto& [what, text] : Telling(story, wrong).tell()) {
    const auto known = right.find(what);
    if (known != right.end() && known->second == text) continue;
    verdicts.insert(what.first == kError ? text : what.first);
  }
  return verdicts;
}

class RerunMutant : public testing::TestWithParam<Row> {};

TEST_P(RerunMutant, ShowsWhereItShouldAndNowhereElse) {
  const Row& row = GetParam();
  const auto verdicts = verdicts_with(row.mutant, row.shown);
  EXPECT_EQ(verdicts.count(std::string(row.code)), 1U) << text_of(verdicts);
  const auto& named = mutant_named(row.mutant).caught_as;
  EXPECT_TRUE(std::any_of(named.begin(), named.end(),
                          [&row](FindingCode code) { return name_of(code) == row.code; }));
  EXPECT_EQ(text_of(verdicts_with(row.mutant, row.hidden)), "");
}

INSTANTIATE_TEST_SUITE_P(Rows, RerunMutant, testing::ValuesIn(rows()), [](const auto& row) {
  std::string name(row.param.mutant);
  std::replace_if(
      name.begin(), name.end(), [](char letter) { return letter == '-' || letter == '/'; }, '_');
  return name + "_" + std::to_string(row.index);
});

}  // namespace
}  // namespace reprise::sim::rerun_mutants_test
