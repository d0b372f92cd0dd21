#pragma once
// What one rank finds out about itself while its job runs, and the evidence that it leaves for
// those who see all ranks. It holds the job against the one that was never interrupted and against
// what the scenario says has happened; it changes nothing and speaks to no other rank.

#include <memory>
#include <optional>
#include <string>

#include "core/engine/load.hpp"
#include "core/engine/save.hpp"
#include "properties/destination.hpp"
#include "properties/state_judge.hpp"
#include "reprise/error.hpp"
#include "scenarios/driver/history.hpp"
#include "scenarios/driver/holders.hpp"
#include "scenarios/driver/rank_program.hpp"
#include "scenarios/driver/record.hpp"
#include "scenarios/driver/scenario.hpp"
#include "scenarios/driver/twin.hpp"
#include "sim/job/megatron_common.hpp"

namespace reprise::driver {

/// A load as the job sees it.
struct FinishedLoad {
  const LoadReport& report;
  const StateDict& state;  ///< as it was taken
  Inventory requested;
  Inventory stored;  ///< empty except on rank 0
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_allowed = 0;  ///< likewise
};

class RankJudge {
 public:
  /// States that it is given stand where the job's arrays do; it reads them back to judge them.
  /// Both are borrowed. `record` gets the rulings and the evidence.
  RankJudge(const RankPart& part, RankRecord& record);

  /// Before the job takes it: its own checks may refuse it.
  void filled(const StateDict& loaded);
  /// After the job took it.
  void loaded(sim::TrainingJob& job, const FinishedLoad& load);
  /// Before a load fills what the job asks of it.
  void asks(const StateDict& wanted);
  /// After a load that was refused before anything was read: the job is held against what it was
  /// before.
  void refused(sim::TrainingJob& job);
  /// After a load that was refused while it read: each tensor that it was to fill has its bits from
  /// before, or is poisoned.
  void refused_while_read(const StateDict& wanted);
  void stepped(const sim::StepRecord& own, const sim::AppliedSamples& applied);
  /// After a stretch of training.
  void trained(sim::TrainingJob& job);
  /// Before the job's state goes to the engine. Returns the save's number in this life.
  std::size_t saving(sim::TrainingJob& job, const StateDict& saved, const SaveAction& plan);
  /// That save ended well, and this is what the checkpoint holds (on the first rank).
  void saved(std::size_t save, const SaveReport& report, Inventory stored);
  void save_failed(std::size_t save, const Error& error);
  /// `what` may hold `bound` bytes beside the job's own memory, and held so many.
  void held(const std::string& what, std::uint64_t bytes, std::uint64_t bound);
  /// The job does not as the scenario says.
  void contradict(const std::string& what);

 private:
  void compare(sim::TrainingJob& job, const std::string& when);
  /// Counts what was compared; streams are judged by themselves.
  StateEvidence held_against(const GlobalState& expected, const StateDict& own,
                             const std::string& when);
  void count(const StateEvidence& evidence, const StateDict& own);
  void keep_first(const StateEvidence& evidence, const std::string& when);
  void judge_objects(const StateDict& loaded, const SavePoint& expected);
  void judge_groups(const ObjectLeaf& leaf);
  void judge_common(const Value& common, const SavePoint& expected);
  const SavePoint* save_told_by(const Value& common, Step step) const;
  bool tells_of(const sim::CommonState& stored, const SavePoint& save) const;
  void judge_source(Step location);
  void judge_handed_over(const StateDict& live, const AuditPage& handed,
                         std::span<const Undefined> undefined);
  void judge_shapes(const StateDict& live, const StateDict& handed);
  void judge_samples(const sim::AppliedSamples& applied);
  void judge_excused(const std::vector<std::string>& excused, const SavePoint& source);
  void judge_modules(const sim::CommonState& stored, const SavePoint& expected);
  std::shared_ptr<Twin> twin_after(std::span<const Turn> turns);
  void add(const Rulings& rulings);
  Suspects suspects();
  std::vector<OtherState> other_states();

  const Scenario& scenario_;
  std::size_t incarnation_;
  GlobalRank rank_;
  TwinBook& twins_;
  sim::Processor& processor_;
  RankRecord& record_;
  std::shared_ptr<Twin> twin_;
  std::vector<SavePoint> saves_;     ///< of all incarnations up to now
  std::size_t saves_before_;         ///< of those before this one
  Position position_;                ///< of this job, as the scenario tells it
  std::optional<SavePoint> source_;  ///< what the job was loaded from
  std::optional<Holders> holders_;   ///< of source_'s layout, once somebody asked
  Comparison total_;
  Destination destination_;  ///< of the load at hand
};

}  // namespace reprise::driver
