// Tests mutants of saves during training. Each mutant must cause a finding in one setup. If the
// mutant has needs, it must cause no finding in a setup that does not meet them.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "core/adapters/local/solo_fabric.hpp"
#include "core/api/calls.hpp"
#include "properties/finding_code.hpp"
#include "properties/state_judge.hpp"
#include "properties/unsettled.hpp"
#include "reprise/save.hpp"
#include "sim/job/job.hpp"
#include "sim/mutants/mutants.hpp"
#include "sim/world/world.hpp"

namespace reprise::sim::async_mutants_test {
namespace {

/// Two ranks train 1 step, save, wait for the save, train 1 step, save, and train `beside` steps.
/// Then a new job loads.
struct Course {
  std::int64_t beside = 0;
  bool finalizes = true;  ///< true if the job finalizes before it exits
  bool dies = false;      ///< true if the job dies without finalizing, after all its writes
  bool moves = false;     ///< true if the job's tensors move before the second save
  std::uint64_t batch = std::uint64_t{1} << 20U;
};

struct Row {
  std::string_view mutant;
  Course shown;
  std::optional<Course> hidden = {};
};

const std::vector<Row> kRows = {
    {"commit-not-polled", {.beside = 12, .dies = true}, Course{.beside = 12}},
    {"cpu-tensor-aliased", {.beside = 1}, Course{.beside = 0}},
    {"finalize-reads-live-step", {.beside = 1}, Course{.beside = 0}},
    {"ipc-pointer-stale", {.moves = true}, Course{.moves = false}},
    {"last-save-killed", {.finalizes = false}, Course{.finalizes = true}},
    {"staging-not-awaited", {.beside = 1}, Course{.beside = 0}},
    {"staging-not-awaited/never", {}},
    {"staging-reused-early", {.batch = 4096}, Course{}},
};

JobConfig config(std::uint64_t seed) {
  return {.makeup = {.model = "gpt-tiny", .layout = parse_layout("dp2")},
          .training = {.seed = seed}};
}

/// Returns the state of a job that trained without interruption on one rank for that many steps.
std::shared_ptr<const GlobalState> reference(std::int64_t steps) {
  static std::map<std::int64_t, std::shared_ptr<const GlobalState>> known;
  if (const auto found = known.find(steps); found != known.end()) return found->second;
  SoloFabric fabric;
  TrainingJob job({.makeup = {.model = "gpt-tiny"}, .training = {.seed = 7}}, fabric);
  for (std::int64_t i = 0; i < steps; ++i) job.step();
  const StateDict state = job.model_space();
  const RankState whole{GlobalRank{0}, &state};
  judged::Findings findings;
  return known[steps] = std::make_shared<const GlobalState>(assemble({&whole, 1}, findings));
}

class Lives {
 public:
  Lives(const Course& course, const Policies& policies) : course_(course), policies_(policies) {}

  /// Runs both lives. Maps the code of each finding to its message.
  std::map<std::string, std::string> run() {
    live([this](Ports& ports) { train_and_save(ports); });
    live([this](Ports& ports) { load_and_compare(ports); });
    return found_;
  }

 private:
  void live(const std::function<void(Ports&)>& rank_main) {
    const auto background = course_.dies ? Background::kAnyTime : Background::kLate;
    World world({.world_size = 2, .background = background}, store_);
    const auto result = world.run([&](Ports& ports, GlobalRank) { rank_main(ports); });
    store_.crash();
    for (const auto& rank : result.ranks) {
      if (rank.end == RankEnd::kReturned) continue;
      const bool refused = rank.end == RankEnd::kFailed;
      found_.emplace(refused ? std::string(name_of(rank.error->code())) : "a defect of ours",
                     refused ? rank.error->what() : rank.message);
    }
  }

  void begin(TrainingJob& job, Ports& ports, const SaveSeams& seams, SaveQueue& queue) {
    const SaveOptions options{.directory = "run",
                              .step = job.iteration().value,
                              .staging_bytes = 2 * course_.batch,
                              .batch_bytes = course_.batch,
                              .returns = BeginReturns::kWhenQueued};
    Job saving =
        job_over(ports, job.world_group(), std::make_shared<JobMemory>(), {.save = &seams});
    queue.begin(
        options, [&] { return begin_save(saving, job.state(), options); },
        [](const EndedSave& end) {
          if (end.error) throw Error(*end.error);
        });
  }

  void train_and_save(Ports& ports) {
    SaveQueue* saves = nullptr;
    JobConfig mine = config(7);
    mine.training.before_update = [this, &saves] { policies_.before_update(*saves); };
    TrainingJob job(std::move(mine), ports.fabric, policies_.job);
    const SaveSeams seams = save_seams(policies_, [&job] { return job.iteration(); });
    SaveQueue queue;
    saves = &queue;
    job.step();
    begin(job, ports, seams, queue);
    queue.finalize();
    job.step();
    if (course_.moves) policies_.before_update(queue);
    if (course_.moves) job.reallocate();
    if (course_.moves) job.step();
    begin(job, ports, seams, queue);
    for (std::int64_t i = 0; i < course_.beside; ++i) {
      job.step();
      policies_.iterated(queue);
    }
    if (course_.dies) return;
    if (course_.finalizes) queue.finalize();
    policies_.shutdown(queue);
  }

  void load_and_compare(Ports& ports) {
    TrainingJob job(config(99), ports.fabric);
    const auto common = read_common(ports.store, job.world(), "run");
    LoadRequest request = job.load_request(common ? &*common : nullptr);
    const LoadResult report =
        reprise::load(ports, job.world(), request.wanted, {.directory = "run"});
    add(judge_settled({job.rank(), &request.wanted}));
    job.take(request.wanted);
    const std::int64_t saved = course_.moves ? 3 : 2;
    if (report.step != saved) {
      found_.emplace("COMMIT_MISSING", "the checkpoint before was loaded");
      return;
    }
    const StateDict own = job.model_space();
    JudgeOptions options{.expected = ExpectedTensors::kItsPart,
                         .skipped_objects = {std::string(kRngKey)},
                         .comparable = layout_free};
    options.suspects.others = [&] {
      std::vector<OtherState> others = {{"before", reference(saved - 1), judged::kStaleBytes}};
      for (std::int64_t i = 1; i <= course_.beside; ++i) {
        others.push_back({"beside", reference(saved + i), judged::kTornSnapshot});
      }
      return others;
    };
    const auto evidence = judge_state(*reference(saved), {job.rank(), &own}, options);
    EXPECT_GT(evidence.compared.elements, 0U);
    add(evidence.findings);
  }

  void add(const judged::Findings& findings) {
    for (const auto& finding : findings) {
      std::ostringstream text;
      text << finding;
      found_.emplace(name_of(finding.code), text.str());
    }
  }

  Course course_;
  Policies policies_;
  SimStore store_;
  std::map<std::string, std::string> found_;
};

std::map<std::string, std::string> found_with(std::string_view mutant, const Course& course) {
  Policies policies;
  mutant_named(mutant).apply(policies);
  return Lives(course, policies).run();
}

std::string text_of(const std::map<std::string, std::string>& found) {
  std::string text;
  for (const auto& [code, message] : found) text += code + ": " + message + "\n";
  return text;
}

TEST(AsyncMutants, each_is_caught_where_its_needs_are_met_and_only_there) {
  for (const auto& row : kRows) {
    SCOPED_TRACE(row.mutant);
    const auto without = Lives(row.shown, {}).run();
    EXPECT_TRUE(without.empty()) << text_of(without);
    const auto& codes = mutant_named(row.mutant).caught_as;
    const auto with = found_with(row.mutant, row.shown);
    const bool caught = std::any_of(codes.begin(), codes.end(), [&with](FindingCode code) {
      return with.contains(std::string(name_of(code)));
    });
    EXPECT_TRUE(caught) << text_of(with);
    EXPECT_FALSE(with.contains("a defect of ours") || with.contains("INTERNAL")) << text_of(with);
    if (!row.hidden) continue;
    const auto hidden = found_with(row.mutant, *row.hidden);
    EXPECT_TRUE(hidden.empty()) << text_of(hidden);
  }
}

}  // namespace
}  // namespace reprise::sim::async_mutants_test
