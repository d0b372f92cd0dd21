#pragma once
// A scenario: the incarnations that run and the results that are expected. This is the parsed form
// of the language in docs/scenarios.md. It is the same on every lane, and a plain value: equal
// scenarios run alike.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/plan/strictness.hpp"
#include "core/save/plan_cache.hpp"
#include "driver/language/program_plan.hpp"
#include "reprise/error.hpp"
#include "reprise/store.hpp"
#include "sim/faults/fault.hpp"
#include "sim/job/job.hpp"

namespace reprise::driver {

/// kProgram runs the scenarios of trainers and nothing else.
enum class LaneKind : std::uint8_t { kSim, kMpi, kGpu, kProgram };
std::string_view name_of(LaneKind lane);
/// Throws USAGE with the known names if there is no such lane.
LaneKind lane_named(std::string_view name);

/// Directory of a scenario's checkpoints within its store.
inline constexpr const char* kCheckpointRoot = "checkpoints";
/// Deadline of one collective, on every lane.
inline constexpr std::uint64_t kCollectiveDeadlineS = 60;

struct TrainAction {
  std::int64_t steps = 1;          ///< 0: only compare
  std::int64_t save_interval = 0;  ///< a save every so many iterations; 0: none

  friend bool operator==(const TrainAction&, const TrainAction&) = default;
};

/// Ways in which a save may fail.
struct Failing {
  enum class How : std::uint8_t {
    kNever,
    kBy,     ///< all ranks must fail, by `code`
    kAny,    ///< all ranks must fail, by some code
    kMaybe,  ///< ranks may fail, by some code
  };
  How how = How::kNever;
  Code code = Code::kInternal;  ///< for kBy

  friend bool operator==(const Failing&, const Failing&) = default;
};
/// "IO", "any", "maybe"; empty for kNever.
std::string to_string(const Failing& failing);

/// Kinds of checkpoint that one job saves in turn; each has its own cache of plans.
enum class CheckpointKind : std::uint8_t { kTraining, kWeights };
std::string_view name_of(CheckpointKind kind);

struct SaveAction {
  bool optimizer = true;
  bool random = true;
  CheckpointKind kind = CheckpointKind::kTraining;
  Failing fails = {};
  std::optional<bool> async = {};  ///< job trains on during the save; nothing: by CheckpointPlan

  friend bool operator==(const SaveAction&, const SaveAction&) = default;
};
/// Waits for the saves in flight.
struct FinalizeAction {
  friend bool operator==(const FinalizeAction&, const FinalizeAction&) = default;
};
/// Moves the job's tensors to other addresses.
struct ReallocateAction {
  friend bool operator==(const ReallocateAction&, const ReallocateAction&) = default;
};
/// Makes the running job load the tracker's checkpoint over its state.
struct LoadAction {
  friend bool operator==(const LoadAction&, const LoadAction&) = default;
};

/// Makes the results of these ranks wrong from the next iteration on, as the kind says:
/// transient_error in the first run only, persistent_error on their devices, correct_result
/// wherever the iteration runs.
struct BadResultAction {
  sim::ResultFault kind = sim::ResultFault::kTransientError;
  std::vector<std::int32_t> ranks = {0};
  bool fatal = true;                          ///< true: not finite; false: a spike
  sim::BadValue value = sim::BadValue::kNaN;  ///< the value, if fatal
  std::int64_t call = 0;                      ///< index of the validation within the iteration
  std::int64_t run = 0;  ///< transient_error: 0 the first run, 1 the first re-run

  friend bool operator==(const BadResultAction&, const BadResultAction&) = default;
};
/// Trains until the job asks to end. It must ask with that code, and save before or not.
struct ExitAction {
  int code = 0;
  std::optional<bool> saves;  ///< nothing: it may save or not

  friend bool operator==(const ExitAction&, const ExitAction&) = default;
};

enum class Fires : std::uint8_t { kYes, kNo, kMaybe };

/// Arms a fault of the world, see sim/faults/fault.hpp. Faults at the start of a life are armed
/// before its load.
struct FaultAction {
  sim::FaultKind kind = sim::FaultKind::kCrash;
  std::int32_t rank = 0;
  std::string phase;  ///< empty: any
  std::string step;   ///< step of the phase's protocol; empty: the whole phase
  sim::FaultMoment moment = sim::FaultMoment::kDuring;
  std::int64_t nth = 0;                    ///< number of matches that it lets pass first
  std::optional<sim::FileKind> file = {};  ///< file that the call must concern; nothing: any
  std::int64_t delay_ms = 0;               ///< late, lost
  std::int64_t bit = 0;                    ///< flip_write, flip_read
  Fires fires = Fires::kYes;               ///< kMaybe: it may stay away

  friend bool operator==(const FaultAction&, const FaultAction&) = default;
};
/// Renames the newest checkpoint to a release after the life has ended, as tools do that make
/// checkpoints to start from.
struct ReleaseAction {
  friend bool operator==(const ReleaseAction&, const ReleaseAction&) = default;
};
/// Damages a stored checkpoint after the life has ended.
struct DamageAction {
  sim::FileKind what = sim::FileKind::kPayload;
  std::int32_t rank = 0;             ///< writer of the payload
  std::optional<std::int64_t> step;  ///< step of the checkpoint; nothing: the tracker's
  std::int64_t byte = 0;             ///< offset; from the end if negative
  std::int32_t bit = 0;
  std::optional<std::int64_t> cut;  ///< number of bytes cut off the end instead
  bool remove = false;              ///< true: delete the whole file instead

  friend bool operator==(const DamageAction&, const DamageAction&) = default;
};
using Action = std::variant<TrainAction, SaveAction, FinalizeAction, ReallocateAction, LoadAction,
                            BadResultAction, ExitAction, FaultAction, ReleaseAction, DamageAction>;

/// Another program that replaces the job. The judges see only the checkpoints that it leaves.
struct ForeignProgram {
  /// Program and arguments. In each, {checkpoints} is replaced by the directory of the checkpoints
  /// and the tracker, {reprise} by the path of this program.
  std::vector<std::string> command;
  int exits = 0;                       ///< exit code that it must have
  std::optional<std::int64_t> leaves;  ///< step of the checkpoint that it must commit
  std::int64_t seconds = 120;          ///< time limit

  friend bool operator==(const ForeignProgram&, const ForeignProgram&) = default;
};

/// Source of the groups for the job's functions; see sim::GroupSource.
enum class GroupsFrom : std::uint8_t { kExplicit, kFallback, kHalf };
std::string_view name_of(GroupsFrom from);
/// Says if the registry of global groups may be asked.
enum class Registry : std::uint8_t { kForbidden, kAllowed };
std::string_view name_of(Registry registry);

/// One life of the job. All but the first begin by loading the tracker's checkpoint.
struct IncarnationPlan {
  /// Layout of a job that is one model, without modules. `optimizer_sharding` is the default for
  /// modules that name none.
  sim::Layout layout;
  sim::Sharding optimizer_sharding = sim::Sharding::kFullyReshardable;
  std::vector<sim::ModuleConfig> modules = {};  ///< modules with their ranks
  std::vector<Action> actions;
  /// Mode of the rerun machine; nothing: an older job without one.
  std::optional<sim::RerunMode> rerun = sim::RerunMode::kDisabled;
  sim::CheckpointFormat format = sim::CheckpointFormat::kTorchDist;
  sim::RerunTemplate rerun_template = sim::RerunTemplate::kAsStored;
  sim::Wrapping iterators = sim::Wrapping::kWrapped;
  bool other_device = false;        ///< devices other than those of the life before
  std::string run = {};             ///< name of the run; empty: the scenario's
  std::vector<std::string> adopts;  ///< other runs whose checkpoints it may load
  std::vector<std::int32_t> ranks;  ///< members of the job in layout order; empty: 0, 1, ...
  GroupsFrom groups = GroupsFrom::kExplicit;
  sim::GroupSet lacks = {};  ///< groups that are withheld from the job's functions
  Registry fallback = Registry::kForbidden;
  sim::GroupSet forbids = {};  ///< global groups that must not be asked for
  bool skips = false;          ///< true: skips iterations in the log of rejected results
  sim::LoadChoice load = {};   ///< parts and modules that its loads leave out
  bool plain_first = false;    ///< order of the optimizers' parameter groups
  sim::KeyForm keys = sim::KeyForm::kPrefixed;  ///< keys of modules
  std::optional<Code> fails = {};               ///< code by which all ranks must refuse its load
  std::string fails_says = {};  ///< part of the message that every rank must then give
  std::string engine = {};      ///< engine name and version to write; empty: this program's
  std::optional<ForeignProgram> foreign = {};  ///< if set, the only other actions are damage

  /// Returns the number of ranks of the world, members or not.
  std::int32_t world_size() const;
  /// True if that rank of the world is a member of the job.
  bool has_member(std::int32_t rank) const;
  /// Returns "0 to 3" or "1, 3": the members of the job, for people.
  std::string members_text() const;

  friend bool operator==(const IncarnationPlan&, const IncarnationPlan&) = default;
};

/// Options for writing and reading the checkpoints of a scenario.
struct CheckpointPlan {
  Strictness strictness = Strictness::kRaiseAll;
  std::vector<CacheKind> plans;  ///< caches that are kept between saves
  bool optimizer = true;         ///< false: no save includes it, even if the save asks for it
  bool random = true;            ///< likewise
  std::int64_t keep = 0;         ///< number of newest checkpoints to keep; 0: all
  bool falls_back = false;       ///< true: loads the newest whole one if the tracker's is damaged
  bool checks = false;           ///< true: verifies checksums when reading
  bool reads_once = false;       ///< true: reads payload once for all ranks that need it
  bool async = false;            ///< true: saves run during training, unless a save says otherwise
  bool late = false;  ///< true: background work runs when waited for, on the simulated lane
  std::int64_t in_flight = 1;      ///< most saves in flight
  std::int64_t staging_bytes = 0;  ///< per save; 0: default
  std::int64_t batch_bytes = 0;    ///< likewise
  /// Capabilities of the simulated lane's store.
  StoreCapabilities store = {.exchange = true};

  friend bool operator==(const CheckpointPlan&, const CheckpointPlan&) = default;
};

/// Possible results of a life that begins with a load.
enum class Outcome : std::uint8_t {
  kContinued,  ///< from the newest committed checkpoint, or one whose save was interrupted
  kFellBack,   ///< from an older committed checkpoint
  kRefused,    ///< refused by a named error, on all ranks
};
std::string_view name_of(Outcome outcome);

struct Expectation {
  std::optional<Code> refusal;       ///< code by which all ranks must end the run
  std::string refusal_says;          ///< part of the message that every rank must give
  std::uint64_t elements_least = 0;  ///< that the last incarnation must compare in total
  bool every_rank_owns = true;       ///< false: a rank may own nothing
  std::vector<Outcome> outcomes = {
      Outcome::kContinued};                          ///< that the lives after the first may end in
  std::optional<std::int64_t> loaded_step;           ///< step that the last life must load
  std::optional<sim::RerunDiagnosis> diagnosis;      ///< result of the last life that had one
  std::optional<std::uint64_t> replans;              ///< sum over all lives
  std::optional<std::vector<std::int64_t>> skipped;  ///< iterations, in the last life
  std::map<std::int64_t, double> rates;              ///< learning rates by step, in the last life
  std::vector<std::string> log;                      ///< each must occur in some line of the log
  std::vector<std::string> silent;                   ///< none may occur in any line of the log
  /// Number of ranks without any part of the last life's tensors; they are held to their bound.
  std::optional<std::int64_t> empty_ranks;

  friend bool operator==(const Expectation&, const Expectation&) = default;
};

/// The element that identifies a recorded failure.
struct RecordedDifference {
  std::int32_t rank = 0;
  std::string key;
  std::vector<std::int64_t> index;
  std::string saved;
  std::string loaded;

  friend bool operator==(const RecordedDifference&, const RecordedDifference&) = default;
};

/// Result of a run, kept in the file so that a replay can be compared with it.
struct Recorded {
  std::string verdict;
  std::string code;
  std::optional<RecordedDifference> first_difference;
  std::string event_hash;
  std::string commit;  ///< hash, with a '+' if the tree had other changes
  std::string build;
  std::string mutant;  ///< mutant that was on; empty: none
  std::uint64_t seed = 1;

  friend bool operator==(const Recorded&, const Recorded&) = default;
};

struct Scenario {
  std::string name;  ///< path below the catalogue without the extension, then the row of the table
  std::string file;  ///< path as it was passed in
  std::string row;   ///< "[k=1,save=tp2-dp2]" in a table; else empty
  std::string proves;
  std::vector<std::string> tags;
  std::string model;
  sim::Sharding optimizer_sharding = sim::Sharding::kFullyReshardable;  ///< of the first life
  std::int64_t shard_dim = 0;  ///< the dimension that fsdp splits
  std::uint64_t seed = 1;
  std::int32_t ranks_per_node = 0;  ///< 0: one node for all
  bool random_by_dp = false;        ///< true: random streams differ by rank of dp x cp
  std::int64_t rerun_samples = 0;   ///< results needed before one can be a spike; 0: default
  sim::Schedule schedule = {};      ///< learning rate and weight decay
  CheckpointPlan checkpoint;
  std::vector<IncarnationPlan> incarnations;
  /// Lives of a trainer, in place of the job and its incarnations.
  std::optional<ProgramPlan> program = {};
  Expectation expect;
  std::vector<std::string> caught;  ///< mutants that must fail here
  std::vector<LaneKind> lanes;
  std::string lanes_reason;  ///< reason for not running on all lanes
  std::optional<Recorded> recorded;

  friend bool operator==(const Scenario&, const Scenario&) = default;
};

/// Parses a file: one scenario, or one per row of its table. USAGE with file and line. `trainers`
/// is the folder of trainers; empty: it is looked for.
std::vector<Scenario> parse_scenarios(const std::string& text, const std::string& file,
                                      const std::string& trainers = {});
/// Parses a file that holds one scenario; USAGE for a table.
Scenario parse_scenario(const std::string& text, const std::string& file);
Scenario read_scenario(const std::string& file);

/// Returns text that parses to this scenario again.
std::string to_yaml(const Scenario& scenario);

}  // namespace reprise::driver
