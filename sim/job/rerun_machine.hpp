#pragma once
// The rerun machine of one rank. It is driven run by run and does not communicate: votes() of all
// ranks are joined by the caller (see votes_of_all) and handed to end_run, so all ranks move
// together.
//
//   machine.begin(iteration);
//   do {
//     ... compute, validate each result ...
//     end = machine.end_run(votes_of_all(world, machine.votes()));
//     if (end.rewind) ... put streams and data back ...
//   } while (end.again);
//   if (const auto exit = machine.conclude()) ... save where it says so, leave with its code ...

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/fabric.hpp"
#include "sim/job/rerun_injector.hpp"
#include "sim/job/rerun_log.hpp"
#include "sim/job/rerun_policy.hpp"
#include "sim/job/rerun_state.hpp"
#include "sim/job/rerun_statistics.hpp"

namespace reprise::sim {

/// How the job ends.
struct RerunExit {
  int code = 0;
  bool save = false;                                 ///< before it leaves
  RerunDiagnosis diagnosis = RerunDiagnosis::kNone;  ///< the ranks' gravest, the same on all
  std::string why;                                   ///< for the operator
};

/// A result to be validated.
struct Validation {
  double value = 0;
  bool rejected = false;     ///< by the caller's own rule
  std::string_view message;  ///< which rule; together with the count of its uses it names the call
  bool fatal = true;
  double tolerance = 0;  ///< relative difference up to which a result counts as reproduced
};

/// The n-th use of a rule by a rank.
struct ValidationCall {
  std::string message;
  std::int32_t rank = 0;      ///< its place in the job
  std::int64_t sequence = 0;  ///< from 1

  friend bool operator==(const ValidationCall&, const ValidationCall&) = default;
};

/// What one rank knows of a fault; all of it is persisted.
struct FaultContext {
  RerunVotes votes;
  std::optional<ValidationCall> failed;
  std::optional<double> initial_result;
  std::string device;  ///< suspicious one; empty: none

  friend bool operator==(const FaultContext&, const FaultContext&) = default;
};

struct RerunSetup {
  RerunMode mode = RerunMode::kDisabled;
  GroupRank place;  ///< in the job: whose state it is, on whatever ranks it stands
  GlobalRank rank;  ///< the process, for people
  std::string device = "localhost:0";  ///< "node:index"
  std::string job_id = "N/A";          ///< of this life, in the log
  ErrorInjector injector = {};
  LargeValues::Limits large = {};
};

/// What a machine leaves in a checkpoint.
struct RerunSnapshot {
  RerunMode mode = RerunMode::kDisabled;
  RerunState state = RerunState::kNotRunningYet;
  std::int64_t iteration = 0;
};

class RerunMachine {
 public:
  RerunMachine() = default;
  explicit RerunMachine(RerunSetup setup, RerunPolicy policy = {});

  RerunMode mode() const { return setup_.mode; }
  RerunState state() const { return state_; }
  /// Number of the iteration that is or was last tried, the first is 1.
  std::int64_t iteration() const { return iteration_; }
  /// 0: initial run, 1: first re-run here; a re-run from a checkpoint is 1, too.
  int run() const;
  /// This rank's own, of the last rejected result.
  RerunDiagnosis diagnosis() const { return diagnosis_; }
  const FaultContext& fault() const { return fault_; }
  bool first_iteration_complete() const { return first_iteration_complete_; }
  const LargeValues& large_values() const { return large_; }
  const ErrorInjector& injector() const { return setup_.injector; }
  const RerunPolicy& policy() const { return policy_; }

  // --- an iteration -----------------------------------------------------------------------------

  /// The first run of iteration number `iteration`; in a machine that was restored, the re-run.
  /// USAGE within an iteration, and after the job was to leave.
  void begin(std::int64_t iteration);
  void validate(const Validation& validation);
  /// 10 times the largest of the first 100 values of that name, by default; takes samples.
  bool unexpectedly_large(std::string_view name, double value);
  /// This rank's, of the present run.
  RerunVotes votes() const { return fault_.votes; }
  RunEnd end_run(RerunVotes world);
  /// After the last run: nothing, and the job goes on; or how it leaves.
  std::optional<RerunExit> conclude();
  /// The iteration is skipped: what was to be found out about it is dropped.
  void drop();

  // --- checkpoints ------------------------------------------------------------------------------

  /// Throws ILLEGAL_STATE_PERSISTED unless the state is 0 or 3.
  RerunSnapshot snapshot() const;
  /// This rank's object: an idle one in state 0.
  Value encode_object(const std::vector<DataPosition>& data) const;
  /// After it was decided that the state is restored (see RerunPolicy::restored). Mode and
  /// iteration become the checkpoint's. LOAD_REJECTED for an object that is not of that form.
  void restore(const RerunSnapshot& snapshot, const Value& object);

  // --- for people -------------------------------------------------------------------------------

  /// Lines for the file of rejected results, of this life.
  const std::vector<std::string>& log() const { return log_; }
  /// What the operator is to be told since the last call.
  std::vector<std::string> take_notes();
  /// Of this rank, since they were last cleared.
  DeterminismStatistics& statistics() { return statistics_; }
  /// Whether the statistics of all ranks are to be reported after this iteration: every second one.
  bool reports_now() const;

 private:
  ValidationCall call_of(std::string_view message);
  void validate_disabled(const Validation& validation);
  void collect(const Validation& validation, const ValidationCall& call);
  void validate_initial(const Validation& validation, const ValidationCall& call);
  void validate_again(const Validation& validation);
  void write(RerunStatus status, const Validation& validation);
  void note(const std::string& text);

  RerunSetup setup_;
  RerunPolicy policy_;
  RerunState state_ = RerunState::kNotRunningYet;
  std::int64_t iteration_ = 0;
  bool first_iteration_complete_ = false;
  RerunDiagnosis diagnosis_ = RerunDiagnosis::kNone;
  RerunVotes world_;  ///< of the last run
  FaultContext fault_;
  LargeValues large_;
  std::map<std::string, std::int64_t, std::less<>> calls_;  ///< in the present run, by message
  std::vector<std::pair<ValidationCall, double>> results_;  ///< of the initial run, for statistics
  DeterminismStatistics statistics_;
  std::vector<std::string> log_;
  std::vector<std::string> notes_;
};

/// Collective: what any rank votes for, all get.
RerunVotes votes_of_all(Communicator& world, RerunVotes mine);

/// As it stands in the common state: {mode, state, current_iteration}.
Value encode(const RerunSnapshot& snapshot);
/// Nothing if the common state has none. LOAD_REJECTED if it is not of that form.
std::optional<RerunSnapshot> rerun_of(const Value& common);

}  // namespace reprise::sim
