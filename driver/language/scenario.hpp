#pragma once
// Defines a scenario: the lives that run and the results that are expected. This is the
// parsed form of the language in docs/scenarios.md. A scenario is a plain value that does not
// depend on the lane: equal scenarios run in the same way.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/plan/strictness.hpp"
#include "driver/language/lie.hpp"
#include "driver/trainers/command_life.hpp"
#include "driver/trainers/program_plan.hpp"
#include "reprise/error.hpp"
#include "reprise/inspect.hpp"
#include "reprise/store.hpp"
#include "sim/faults/fault.hpp"
#include "sim/job/job.hpp"

namespace reprise::driver {

class Mistakes;

/// Where a scenario runs. kProgram runs only the scenarios of trainers.
enum class LaneKind : std::uint8_t { kSim, kMpi, kGpu, kProgram };
std::string_view name_of(LaneKind lane);
/// Returns the lane of that name. Throws USAGE, which lists the known names, if no lane has that
/// name.
LaneKind lane_named(std::string_view name);

/// Directory of a scenario's checkpoints within its store.
inline constexpr const char* kCheckpointRoot = "checkpoints";
/// Deadline of one collective, in seconds, on every lane.
inline constexpr std::uint64_t kCollectiveDeadlineS = 60;

struct TrainAction {
  std::int64_t steps = 1;          ///< 0 to compare the state without training
  std::int64_t save_interval = 0;  ///< number of iterations between saves; 0 for no saves

  friend bool operator==(const TrainAction&, const TrainAction&) = default;
};

/// Ways in which a save may fail.
struct Failing {
  enum class How : std::uint8_t {
    kNever,
    kBy,     ///< the save must fail on all ranks with `code`
    kAny,    ///< the save must fail on all ranks, with any code
    kMaybe,  ///< the save may fail, with any code
  };
  How how = How::kNever;
  Code code = Code::kInternal;  ///< used for kBy

  friend bool operator==(const Failing&, const Failing&) = default;
};
/// Returns the name of a code, "any" or "maybe"; empty for kNever.
std::string name_of(const Failing& failing);

/// Kinds of checkpoint that one job saves; each kind has its own cache of plans.
enum class CheckpointKind : std::uint8_t { kTraining, kWeights };
std::string_view name_of(CheckpointKind kind);

struct SaveAction {
  bool optimizer = true;
  bool random = true;
  CheckpointKind kind = CheckpointKind::kTraining;
  Failing fails = {};
  std::optional<bool> async = {};  ///< true to train during the save; if empty, see CheckpointPlan
  bool checksums = true;           ///< false to write elements without their checksums
  std::optional<Lie> lie = {};

  friend bool operator==(const SaveAction&, const SaveAction&) = default;
};
/// Waits for all saves in flight.
struct FinalizeAction {
  friend bool operator==(const FinalizeAction&, const FinalizeAction&) = default;
};
/// Moves the job's tensors to other addresses.
struct ReallocateAction {
  friend bool operator==(const ReallocateAction&, const ReallocateAction&) = default;
};
/// Loads the tracker's checkpoint into the running job, which replaces the job's state.
struct LoadAction {
  friend bool operator==(const LoadAction&, const LoadAction&) = default;
};

/// Makes the results of these ranks wrong, from the next iteration on. An iteration can be run
/// again to check its result. `kind` decides which of these runs are wrong: for transient_error,
/// one run; for persistent_error, every run on the ranks' devices; for correct_result, every run on
/// any device.
struct BadResultAction {
  sim::ResultFault kind = sim::ResultFault::kTransientError;
  std::vector<std::int32_t> ranks = {0};
  bool fatal = true;  ///< true for a result that is not finite, false for a spike
  sim::BadValue value = sim::BadValue::kNaN;  ///< the reported value, if `fatal` is true
  std::int64_t call = 0;                      ///< index of the validation within the iteration
  /// For transient_error: the run whose result is wrong. 0 is the first run, 1 the first re-run.
  std::int64_t run = 0;

  friend bool operator==(const BadResultAction&, const BadResultAction&) = default;
};
/// Trains until the job exits by itself. The exit code must be `code`.
struct ExitAction {
  int code = 0;
  /// True if the job must save before it exits; false if it must not; empty if both are allowed.
  std::optional<bool> saves;

  friend bool operator==(const ExitAction&, const ExitAction&) = default;
};

enum class Fires : std::uint8_t { kYes, kNo, kMaybe };

/// Arms a fault (see sim/faults/fault.hpp). Faults at the start of a life are armed before the
/// life's load.
struct FaultAction {
  sim::FaultKind kind = sim::FaultKind::kCrash;
  std::int32_t rank = 0;
  std::string phase;  ///< if empty, any phase
  std::string step;   ///< step of the phase's protocol; if empty, the whole phase
  sim::FaultMoment moment = sim::FaultMoment::kDuring;
  std::int64_t nth = 0;  ///< number of matching events to ignore before the fault fires
  std::optional<sim::FileKind> file = {};  ///< kind of file the call acts on; if empty, any
  std::int64_t delay_ms = 0;               ///< for the kinds late and lost
  std::int64_t bit = 0;                    ///< for the kinds flip_write and flip_read
  Fires fires = Fires::kYes;               ///< kMaybe if the fault need not fire

  friend bool operator==(const FaultAction&, const FaultAction&) = default;
};
/// After the life has ended, turns the newest checkpoint into a release. Tools that prepare a
/// checkpoint for later training do the same.
struct ReleaseAction {
  friend bool operator==(const ReleaseAction&, const ReleaseAction&) = default;
};
/// After the life has ended, describes the newest checkpoint anew, as ranks do that write without
/// collectives: each in metadata of its own, with its random streams as those of a rank alone.
struct OwnMetadataAction {
  friend bool operator==(const OwnMetadataAction&, const OwnMetadataAction&) = default;
};
/// After the life has ended, rewrites the newest checkpoint under another sharding, in its place.
struct ReshardAction {
  std::int64_t ranks = 0;  ///< parts of dimension 0 of each tensor; 0 to keep the boxes
  std::int64_t writers = 1;
  std::optional<Code> fails = {};  ///< code with which it must fail; the checkpoint then stays

  friend bool operator==(const ReshardAction&, const ReshardAction&) = default;
};
/// After the life has ended, compares a stored checkpoint with another one.
struct DiffAction {
  std::optional<std::int64_t> step = {};  ///< step of the first; if empty, the tracker's
  /// Step of the second; if empty, it is the first as it was before it was resharded.
  std::optional<std::int64_t> with = {};
  std::vector<std::string> ignore = {};   ///< begins of keys that are not compared
  DiffOutcome says = DiffOutcome::kSame;  ///< outcome that the diff must have

  friend bool operator==(const DiffAction&, const DiffAction&) = default;
};
/// Damages a stored checkpoint after the life has ended.
struct DamageAction {
  sim::FileKind what = sim::FileKind::kPayload;
  std::int32_t rank = 0;             ///< rank that wrote the payload
  std::optional<std::int64_t> step;  ///< step of the checkpoint; if empty, the tracker's
  std::int64_t byte = 0;             ///< offset of the changed byte; counted from the end if < 0
  std::int32_t bit = 0;
  std::optional<std::int64_t> cut;  ///< if set, truncates the file by this number of bytes instead
  bool remove = false;              ///< if true, the whole file is deleted instead
  /// If set, the tensors of the payload file whose keys begin with `keys` get the bytes that the
  /// checkpoint of this step has for them.
  std::optional<std::int64_t> from = {};
  std::string keys = {};

  friend bool operator==(const DamageAction&, const DamageAction&) = default;
};
using Action = std::variant<TrainAction, SaveAction, FinalizeAction, ReallocateAction, LoadAction,
                            BadResultAction, ExitAction, FaultAction, ReleaseAction,
                            OwnMetadataAction, ReshardAction, DiffAction, DamageAction>;

/// One life of the job. Every life except the first begins by loading the tracker's checkpoint.
struct LifePlan {
  /// Layout of a job without modules, which is one model. `optimizer_sharding` is the default for
  /// modules that set no sharding of their own.
  sim::Layout layout;
  sim::Sharding optimizer_sharding = sim::Sharding::kFullyReshardable;
  std::vector<sim::ModuleConfig> modules = {};  ///< empty if the job is one model
  std::vector<Action> actions;
  /// Mode of the rerun machine; empty for an older job, which has no rerun machine.
  std::optional<sim::RerunMode> rerun = sim::RerunMode::kDisabled;
  sim::CheckpointFormat format = sim::CheckpointFormat::kTorchDist;
  sim::RerunTemplate rerun_template = sim::RerunTemplate::kAsStored;
  sim::Wrapping iterators = sim::Wrapping::kWrapped;
  bool other_device = false;        ///< true if the devices differ from the previous life's
  std::string run = {};             ///< name of the run; if empty, the scenario's name
  std::vector<std::string> adopts;  ///< other runs whose checkpoints this life may load
  std::vector<std::int32_t> ranks;  ///< members of the job in layout order; if empty, 0, 1, ...
  sim::GroupSource groups = sim::GroupSource::kExplicit;
  /// Groups that are not passed to the job's functions.
  sim::GroupSet lacks = {};
  sim::RegistryUse fallback = sim::RegistryUse::kForbidden;
  sim::GroupSet forbids = {};  ///< global groups that the job must not use
  bool skips = false;          ///< true to skip iterations listed in the log of rejected results
  sim::LoadChoice load = {};   ///< parts and modules that this life's loads leave out
  bool plain_first = false;    ///< true if an optimizer's plain parameter group comes first
  sim::KeyForm keys = sim::KeyForm::kPrefixed;  ///< form of the modules' keys
  std::optional<Code> fails = {};               ///< code with which all ranks must refuse the load
  std::optional<Lie> lie = {};                  ///< one rank asks a load for something wrong
  std::string fails_says = {};  ///< text that each rank's message must contain if a load is refused
  std::string engine = {};      ///< engine name and version to record; if empty, this program's
  std::optional<CommandLife> command = {};  ///< runs instead of the job; only damage may follow

  /// Returns the number of ranks in the world, including ranks that are not members of the job.
  std::int32_t world_size() const;
  /// True if rank `rank` of the world is a member of the job.
  bool has_member(std::int32_t rank) const;
  /// Returns the job's members as text for messages, such as "0 to 3" or "1, 3".
  std::string members_text() const;

  friend bool operator==(const LifePlan&, const LifePlan&) = default;
};

/// Says which changes the end of a life leaves in the store of the simulated lane.
enum class CrashModel : std::uint8_t {
  kPowerCut,   ///< only what was synced
  kKilled,     ///< everything that was written, synced or not
  kAnySubset,  ///< what was synced, and of the rest a subset that the seeds decide
};
std::string_view name_of(CrashModel model);

struct Scenario;
/// True if the scenario says that its lives end with a power cut.
bool is_power_cut_planned(const Scenario& scenario);

/// Options for writing and reading the checkpoints of a scenario.
struct CheckpointPlan {
  Strictness strictness = Strictness::kRaiseAll;
  bool keeps_plan = false;  ///< true if the plan of a save is kept for the next one
  /// False to leave out the optimizer from every save, even if a save action includes it.
  bool optimizer = true;
  /// False to leave out random states from every save, even if a save action includes them.
  bool random = true;
  std::int64_t keep = 0;    ///< number of newest checkpoints to keep; 0 for all
  bool falls_back = false;  ///< true if a load may fall back to the newest whole checkpoint
  bool checks = false;      ///< true to verify checksums when reading
  bool reads_once = false;  ///< true to read payload once for all ranks that need it
  bool async = false;       ///< true to train during saves; a save action may override it
  /// True to delay background work on the simulated lane until something waits for it.
  bool late = false;
  std::int64_t in_flight = 1;      ///< upper limit on the saves in flight
  std::int64_t staging_bytes = 0;  ///< limit per save; 0 for the default
  std::int64_t batch_bytes = 0;    ///< limit per batch; 0 for the default
  /// If empty, a power cut. If it is a power cut, that is planned: one of the lives must have
  /// changes that it takes.
  std::optional<CrashModel> crash = {};
  /// Capabilities of the simulated lane's store.
  StoreCapabilities store = {.exchange = true};

  friend bool operator==(const CheckpointPlan&, const CheckpointPlan&) = default;
};

/// Possible outcomes of a life that begins with a load.
enum class Outcome : std::uint8_t {
  kContinued,  ///< loaded the newest committed checkpoint, or a newer one whose save did not finish
  kFellBack,   ///< loaded an older committed checkpoint
  kRefused,    ///< all ranks refused the load with a named error
};
std::string_view name_of(Outcome outcome);

struct Expectation {
  std::optional<Code> refusal;       ///< code with which all ranks must end the run
  std::string refusal_says;          ///< text that every rank's message must contain
  std::uint64_t elements_least = 0;  ///< minimum number of elements that the last life must compare
  bool every_rank_owns = true;       ///< false if a rank may own nothing
  /// Outcomes that are allowed for a life that begins with a load.
  std::vector<Outcome> outcomes = {Outcome::kContinued};
  std::optional<std::int64_t> loaded_step;       ///< step that the last life must load
  std::optional<sim::RerunDiagnosis> diagnosis;  ///< expected in the last life that has one
  std::optional<std::uint64_t> replans;  ///< how often plans must be recomputed, over all lives
  std::optional<std::vector<std::int64_t>> skipped;  ///< iterations skipped in the last life
  std::map<std::int64_t, double> rates;              ///< learning rates by step, in the last life
  std::vector<std::string> log;                      ///< texts that the log must contain
  std::vector<std::string> silent;                   ///< texts that the log must not contain
  /// Number of ranks that hold no elements in the last life. The memory of these ranks must stay
  /// within the bound for ranks without elements.
  std::optional<std::int64_t> empty_ranks;

  friend bool operator==(const Expectation&, const Expectation&) = default;
};

/// The first wrong element of a recorded failure. A replay must find the same element.
struct RecordedDifference {
  std::int32_t rank = 0;
  std::string key;
  std::vector<std::int64_t> index;
  std::string saved;
  std::string loaded;

  friend bool operator==(const RecordedDifference&, const RecordedDifference&) = default;
};

/// Result of a run, kept in the scenario file so that a replay can be compared with it.
struct Recorded {
  std::string verdict;
  std::string code;
  std::optional<RecordedDifference> first_difference;
  std::string event_hash;
  std::string commit;  ///< hash of the commit, with a '+' if the tree had uncommitted changes
  std::string build;
  std::string mutant;  ///< mutant that was active; empty if there was none
  std::uint64_t seed = 1;

  friend bool operator==(const Recorded&, const Recorded&) = default;
};

struct Scenario {
  std::string name;  ///< path below the catalogue without the extension, plus the row of a table
  std::string file;  ///< path as the caller passed it
  std::string row;   ///< row of a table, such as "[k=1,save=tp2-dp2]"; empty without a table
  std::string proves;
  std::vector<std::string> tags;
  std::string model;
  sim::Sharding optimizer_sharding = sim::Sharding::kFullyReshardable;  ///< used by the first life
  std::int64_t shard_dim = 0;  ///< dimension along which the optimizer's boxes are split
  std::uint64_t seed = 1;
  std::int32_t ranks_per_node = 0;  ///< 0 if all ranks are on one node
  bool extra_tensor = false;        ///< true if checkpoints have a tensor that belongs to no module
  bool random_by_dp = false;        ///< true if random streams differ between ranks of dp x cp
  /// A result can count as a spike only after this many earlier results; 0 for the default.
  std::int64_t rerun_samples = 0;
  sim::Schedule schedule = {};  ///< schedule of learning rate and weight decay
  /// The field in which the two parameter groups of an optimizer differ.
  sim::GroupField groups_differ_in = sim::GroupField::kWdMult;
  CheckpointPlan checkpoint;
  std::vector<LifePlan> lives;
  /// The plan of a trainer; if set, it replaces the job and its lives.
  std::optional<ProgramPlan> program = {};
  Expectation expect;
  std::vector<std::string> caught;  ///< mutants that this scenario must catch
  std::vector<LaneKind> lanes;
  std::string lanes_reason;  ///< reason why this scenario does not run on all lanes
  std::optional<Recorded> recorded;

  friend bool operator==(const Scenario&, const Scenario&) = default;
};

/// Parses a file with one scenario, or with one per row of its table. Throws USAGE with file and
/// line. `trainers` is the folder of trainers; if empty, it is searched for.
std::vector<Scenario> parse_scenarios(const std::string& text, const std::string& file,
                                      const std::string& trainers = {});
/// Does the same, but adds all mistakes that can be found independently of each other to `mistakes`
/// instead of throwing the first. Returns no scenario if there is any.
std::vector<Scenario> parse_scenarios(const std::string& text, const std::string& file,
                                      const std::string& trainers, Mistakes& mistakes);
/// Parses a file with one scenario. Throws USAGE for a table.
Scenario parse_scenario(const std::string& text, const std::string& file);
Scenario read_scenario(const std::string& file);

}  // namespace reprise::driver
