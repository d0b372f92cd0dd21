#pragma once
// Diagnoses why a rank's result was rejected. The caller runs the iteration again, and the machine
// compares the results. The machine does not communicate: the caller combines the votes() of all
// ranks (see votes_of_all) and passes the result to end_run, so that all ranks change state
// together.
//
//   machine.begin(iteration);
//   do {
//     ... compute, validate each result ...
//     end = machine.end_run(votes_of_all(world, machine.votes()));
//     if (end.rewind) ... put streams and data back ...
//   } while (end.again);
//   if (const auto exit = machine.conclude()) ... save if it says so, leave with its code ...

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/fabric.hpp"
#include "sim/job/rerun/rerun_injector.hpp"
#include "sim/job/rerun/rerun_log.hpp"
#include "sim/job/rerun/rerun_policy.hpp"
#include "sim/job/rerun/rerun_state.hpp"
#include "sim/job/rerun/rerun_statistics.hpp"

namespace reprise::sim {

/// How the job exits.
struct RerunExit {
  int code = 0;
  bool save = false;  ///< true to save before the exit
  /// Most serious diagnosis of any rank; the same on all ranks.
  RerunDiagnosis diagnosis = RerunDiagnosis::kNone;
  std::string why;  ///< reason, for the operator
};

/// A result to validate.
struct Validation {
  double value = 0;
  bool rejected = false;  ///< true if the caller's own rule rejects the result
  /// Name of the rule. Together with a count of the rule's uses in the run, it identifies the
  /// validation.
  std::string_view message;
  bool fatal = true;
  double tolerance = 0;  ///< limit on the relative difference between a result and its reproduction
};

/// The n-th use of a rule by a rank.
struct ValidationCall {
  std::string message;
  std::int32_t rank = 0;  ///< index of the rank in the job
  /// Number of times that the rank has used the rule in this run, including this use.
  std::int64_t sequence = 0;

  friend bool operator==(const ValidationCall&, const ValidationCall&) = default;
};

/// Everything that a rank knows about a fault. A checkpoint contains all of it.
struct FaultContext {
  RerunVotes votes;
  std::optional<ValidationCall> failed;
  std::optional<double> initial_result;
  std::string device;  ///< the suspicious device; empty if there is none

  friend bool operator==(const FaultContext&, const FaultContext&) = default;
};

struct RerunSetup {
  RerunMode mode = RerunMode::kDisabled;
  GroupRank place;                     ///< index of this rank in the job; not its global rank
  GlobalRank rank;                     ///< global rank of this process; used in messages
  std::string device = "localhost:0";  ///< this rank's device, as "node:index"
  std::string job_id = "N/A";          ///< id of this life in the log
  ErrorInjector injector = {};
  LargeValues::Limits large = {};
};

/// State of a machine in a checkpoint.
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
  /// Returns the number of the last iteration that was begun; the first is 1.
  std::int64_t iteration() const { return iteration_; }
  /// Returns 0 in the initial run and 1 in the first re-run. A re-run from a checkpoint also counts
  /// as the first re-run.
  int run() const;
  /// Returns this rank's own diagnosis of the last rejected result.
  RerunDiagnosis diagnosis() const { return diagnosis_; }
  const FaultContext& fault() const { return fault_; }
  const ErrorInjector& injector() const { return setup_.injector; }
  const RerunPolicy& policy() const { return policy_; }

  // --- an iteration -----------------------------------------------------------------------------

  /// Starts the first run of iteration number `iteration`. In the state WILL_RERUN_FROM_CHECKPOINT,
  /// starts the re-run of the restored iteration instead. Throws USAGE in all other states except
  /// NOT_RUNNING_YET.
  void begin(std::int64_t iteration);
  void validate(const Validation& validation);
  /// True if the value is unexpectedly large: by default, more than 10 times the largest of the
  /// first 100 values, which serve as samples.
  bool unexpectedly_large(std::string_view name, double value);
  /// Returns this rank's votes in the current run.
  RerunVotes votes() const { return fault_.votes; }
  RunEnd end_run(RerunVotes world);
  /// Called after the last run. Returns how the job must exit, or nothing if it continues.
  std::optional<RerunExit> conclude();
  /// Called if the iteration is skipped. Abandons the diagnosis of the iteration's rejected result.
  void drop();

  // --- checkpoints ------------------------------------------------------------------------------

  /// Returns the state to save. Throws ILLEGAL_STATE_PERSISTED unless the state is NOT_RUNNING_YET
  /// or WILL_RERUN_FROM_CHECKPOINT.
  RerunSnapshot snapshot() const;
  /// Returns this rank's object to save. Between iterations, the object records only that the
  /// machine is idle.
  Value encode_object(const std::vector<DataPosition>& data) const;
  /// Restores a stored state. Called only if RerunPolicy::restored decides to restore the state.
  /// Reads the mode and the iteration from the checkpoint. Throws LOAD_REJECTED for an object that
  /// does not have the right form.
  void restore(const RerunSnapshot& snapshot, const Value& object);

  // --- messages and statistics ------------------------------------------------------------------

  /// Returns this life's lines for the file of rejected results.
  const std::vector<std::string>& log() const { return log_; }
  /// Returns the messages for the operator since the last call.
  std::vector<std::string> take_notes();
  /// Returns the statistics that this rank has collected since they were last cleared.
  DeterminismStatistics& statistics() { return statistics_; }
  /// True after every second iteration: the statistics of all ranks must then be reported.
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
  RerunVotes world_;  ///< votes of all ranks in the last run
  FaultContext fault_;
  LargeValues large_;
  /// Number of validations in this run for each message.
  std::map<std::string, std::int64_t, std::less<>> calls_;
  /// Results of the initial run; re-runs are compared with them.
  std::vector<std::pair<ValidationCall, double>> results_;
  DeterminismStatistics statistics_;
  std::vector<std::string> log_;
  std::vector<std::string> notes_;
};

/// Collective. Returns the union of all ranks' votes.
RerunVotes votes_of_all(Communicator& world, RerunVotes mine);

/// Encodes the entry of the common state: {mode, state, current_iteration}.
Value encode(const RerunSnapshot& snapshot);
/// Returns the machine's entry in the common state; nothing if there is none. Throws LOAD_REJECTED
/// if it does not have the right form.
std::optional<RerunSnapshot> rerun_of(const Value& common);

}  // namespace reprise::sim
