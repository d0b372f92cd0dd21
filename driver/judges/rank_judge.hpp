#pragma once
// Judges one rank while its job runs, and collects evidence for the judges that see all ranks.
// Compares the job with the uninterrupted one and with the saves that the scenario describes.
// Changes nothing and does not communicate.

#include <memory>
#include <optional>
#include <string>

#include "core/load/load.hpp"
#include "core/save/save.hpp"
#include "driver/judges/holders.hpp"
#include "driver/language/scenario.hpp"
#include "driver/record/history.hpp"
#include "driver/record/rank_part.hpp"
#include "driver/record/record.hpp"
#include "driver/record/reference_run.hpp"
#include "properties/destination.hpp"
#include "properties/state_judge.hpp"
#include "reprise/error.hpp"
#include "sim/job/modules/megatron_common.hpp"

namespace reprise::driver {

/// What the job knows about a completed load.
struct FinishedLoad {
  const LoadResult& report;
  const StateDict& state;  ///< state as the load filled it
  Inventory requested;
  Inventory stored;  ///< keys of the checkpoint; empty except on rank 0
  std::uint64_t bytes_read = 0;
  /// Limit on the bytes that all ranks together may read; set only on rank 0, and 0 on other ranks.
  std::uint64_t bytes_allowed = 0;
};

class RankJudge : judged::Finder {
 public:
  /// Both arguments must outlive the judge, which writes findings and evidence to `record`. The
  /// states passed to the judge may be in device memory, so the judge copies them to the host.
  RankJudge(const RankPart& part, RankRecord& record);

  /// Called before the job takes the loaded state, because the job's own checks may refuse it.
  void filled(const StateDict& loaded);
  /// Called after the job took the state.
  void loaded(sim::TrainingJob& job, const FinishedLoad& load);
  /// Called before a load, with the state that the load is to fill.
  void asks(const StateDict& wanted);
  /// Called after a load that was refused before it read anything. Compares the job with its state
  /// before the load.
  void refused(sim::TrainingJob& job);
  /// Called after a load that was refused while it read. Requires that each requested tensor is
  /// either poisoned or has the same bits as before the load.
  void refused_while_read(const StateDict& wanted);
  void stepped(const sim::StepRecord& own, const sim::AppliedSamples& applied);
  /// Called after the job has trained for some steps.
  void trained(sim::TrainingJob& job);
  /// Called before the job's state goes to the engine. Returns the save's number in this life.
  std::size_t saving(sim::TrainingJob& job, const StateDict& saved, const SaveAction& plan);
  /// Called when save number `save` of this life has ended well. On the first rank, `stored` has
  /// the keys of the new checkpoint; on other ranks it is empty.
  void saved(std::size_t save, const SaveResult& report, Inventory stored);
  void save_failed(std::size_t save, const Error& error);
  /// Adds a finding if `bytes`, the memory that `what` used besides the job's own, is more than
  /// `bound`.
  void held(const std::string& what, std::uint64_t bytes, std::uint64_t bound);
  /// Adds a finding that the job contradicts the scenario.
  void contradict(const std::string& what);

 private:
  void compare(sim::TrainingJob& job, const std::string& when);
  /// Compares `own` with the expected state, except for random streams, which have a judge of their
  /// own. Counts the elements that were compared.
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
  std::shared_ptr<ReferenceRun> reference_after(std::span<const Turn> turns);
  Suspects suspects();
  std::vector<OtherState> other_states();

  const Scenario& scenario_;
  std::size_t life_;
  GlobalRank rank_;
  ReferenceRuns& references_;
  sim::Processor& processor_;
  RankRecord& record_;
  std::shared_ptr<ReferenceRun> reference_;
  std::vector<SavePoint> saves_;  ///< saves of all lives so far
  std::size_t saves_before_;      ///< number of saves of earlier lives
  Position position_;             ///< where the job must be now according to the scenario's actions
  std::optional<SavePoint> source_;  ///< save that the job was loaded from
  std::optional<Holders> holders_;   ///< holders in the layout of source_; computed on first use
  Comparison total_;
  Destination destination_;  ///< memory that the current load fills
};

}  // namespace reprise::driver
