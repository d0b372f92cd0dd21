#pragma once
// A scenario: what is run, in incarnations, and what is expected. docs/scenarios.md is the
// language; this is what it is read into. The same on every lane. A plain value: two scenarios that
// are equal run alike.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/plan/strictness.hpp"
#include "reprise/error.hpp"
#include "reprise/store.hpp"
#include "sim/faults/fault.hpp"
#include "sim/job/job.hpp"

namespace reprise::driver {

enum class LaneKind : std::uint8_t { kSim, kMpi, kGpu };
std::string_view name_of(LaneKind lane);
/// USAGE with the names that there are.
LaneKind lane_named(std::string_view name);

struct TrainAction {
  std::int64_t steps = 1;          ///< 0: compare, and go on
  std::int64_t save_interval = 0;  ///< a save after each that many iterations of the job; 0: none

  friend bool operator==(const TrainAction&, const TrainAction&) = default;
};

/// The ways in which a save may end, besides well.
struct Failing {
  enum class How : std::uint8_t {
    kNever,
    kBy,     ///< all ranks must fail, by `code`
    kAny,    ///< all ranks must fail, by some code
    kMaybe,  ///< ranks may fail, by some code
  };
  How how = How::kNever;
  Code code = Code::kInternal;  ///< of kBy

  friend bool operator==(const Failing&, const Failing&) = default;
};
/// "IO", "any", "maybe"; empty for kNever.
std::string to_string(const Failing& failing);

struct SaveAction {
  bool optimizer = true;
  bool random = true;
  std::string kind = "training";  ///< of checkpoint; each kind has its own cache of plans
  Failing fails = {};
  std::optional<bool> async = {};  ///< the job trains on beside it; nothing: as CheckpointPlan says

  friend bool operator==(const SaveAction&, const SaveAction&) = default;
};
/// Waits for the saves in flight.
struct FinalizeAction {
  friend bool operator==(const FinalizeAction&, const FinalizeAction&) = default;
};
/// The job's tensors stand elsewhere in memory from here on.
struct ReallocateAction {
  friend bool operator==(const ReallocateAction&, const ReallocateAction&) = default;
};
/// The running job loads what the tracker names, over what it holds.
struct LoadAction {
  friend bool operator==(const LoadAction&, const LoadAction&) = default;
};

/// From the next iteration that is begun, these ranks' results are wrong, as the kind says:
/// transient_error in the first run alone, persistent_error on their devices, correct_result
/// wherever it is run.
struct BadResultAction {
  sim::ResultFault kind = sim::ResultFault::kTransientError;
  std::vector<std::int32_t> ranks = {0};
  bool fatal = true;                          ///< not finite; else a spike
  sim::BadValue value = sim::BadValue::kNaN;  ///< of a fatal one
  std::int64_t call = 0;                      ///< which validation of the iteration
  std::int64_t run = 0;  ///< transient_error: 0 the first run, 1 the first re-run

  friend bool operator==(const BadResultAction&, const BadResultAction&) = default;
};
/// Trains until the job asks to end; it must do so with that code, after a save or without one.
struct ExitAction {
  int code = 0;
  std::optional<bool> saves;  ///< nothing: either

  friend bool operator==(const ExitAction&, const ExitAction&) = default;
};

enum class Fires : std::uint8_t { kYes, kNo, kMaybe };

/// Arms a fault of the world, see sim/faults/fault.hpp. What stands first in a life is armed before
/// its load.
struct FaultAction {
  sim::FaultKind kind = sim::FaultKind::kCrash;
  std::int32_t rank = 0;
  std::string phase;  ///< empty: any
  std::string step;   ///< of the phase's protocol; empty: the phase as a whole
  sim::FaultMoment moment = sim::FaultMoment::kDuring;
  std::int64_t nth = 0;                    ///< that many times it passes by
  std::optional<sim::FileKind> file = {};  ///< that the call is about; nothing: anything
  std::int64_t delay_ms = 0;               ///< late, lost
  std::int64_t bit = 0;                    ///< flip_write, flip_read
  Fires fires = Fires::kYes;               ///< must it?

  friend bool operator==(const FaultAction&, const FaultAction&) = default;
};
/// After the life has ended the newest checkpoint is given the name of a release, as by tools that
/// make checkpoints to begin from.
struct ReleaseAction {
  friend bool operator==(const ReleaseAction&, const ReleaseAction&) = default;
};
/// Done to a stored checkpoint after the life has ended.
struct DamageAction {
  sim::FileKind what = sim::FileKind::kPayload;
  std::int32_t rank = 0;             ///< whose payload
  std::optional<std::int64_t> step;  ///< of which checkpoint; nothing: the tracker's
  std::int64_t byte = 0;             ///< from the end if negative
  std::int32_t bit = 0;
  std::optional<std::int64_t> cut;  ///< bytes taken off the end, instead
  bool remove = false;              ///< the whole file, instead

  friend bool operator==(const DamageAction&, const DamageAction&) = default;
};
using Action = std::variant<TrainAction, SaveAction, FinalizeAction, ReallocateAction, LoadAction,
                            BadResultAction, ExitAction, FaultAction, ReleaseAction, DamageAction>;

/// Somebody else's program in place of the job. It is judged by the checkpoints that it leaves.
struct ForeignProgram {
  /// Its words. In each, {checkpoints} stands for the directory where the checkpoints are, with the
  /// tracker; {reprise} for this program.
  std::vector<std::string> command;
  int exits = 0;                       ///< its exit code must be that
  std::optional<std::int64_t> leaves;  ///< step of a checkpoint that it commits
  std::int64_t seconds = 120;          ///< that it may take

  friend bool operator==(const ForeignProgram&, const ForeignProgram&) = default;
};

/// Where the job's functions have their groups from; see sim::GroupSource.
enum class GroupsFrom : std::uint8_t { kExplicit, kFallback, kHalf };
std::string_view name_of(GroupsFrom from);
/// Says if the registry of global groups may be asked.
enum class Registry : std::uint8_t { kForbidden, kAllowed };
std::string_view name_of(Registry registry);

/// One life of the job. All but the first begin by loading what the tracker names.
struct IncarnationPlan {
  /// Of a job that is one model: then there are no modules. `optimizer_sharding` is that of modules
  /// that name none.
  sim::Layout layout;
  sim::Sharding optimizer_sharding = sim::Sharding::kFullyReshardable;
  std::vector<sim::ModuleConfig> modules = {};  ///< with their ranks
  std::vector<Action> actions;
  /// Mode of the rerun machine; nothing: an older job, which has none.
  std::optional<sim::RerunMode> rerun = sim::RerunMode::kDisabled;
  sim::CheckpointFormat format = sim::CheckpointFormat::kTorchDist;
  sim::RerunTemplate rerun_template = sim::RerunTemplate::kAsStored;
  sim::Wrapping iterators = sim::Wrapping::kWrapped;
  bool other_device = false;        ///< than those of the life before
  std::string run = {};             ///< whose job it is; empty: the scenario's
  std::vector<std::string> adopts;  ///< other runs whose checkpoints it may load
  std::vector<std::int32_t> ranks;  ///< members of the job in layout order; empty: 0, 1, ...
  GroupsFrom groups = GroupsFrom::kExplicit;
  std::vector<std::string> lacks = {};  ///< groups that the job's functions are not given
  Registry fallback = Registry::kForbidden;
  std::vector<std::string> forbids = {};  ///< global groups that it may not be asked for
  bool skips = false;                     ///< iterations that the log of rejected results names
  sim::LoadChoice load = {};              ///< what its loads leave behind, and which modules
  bool plain_first = false;               ///< order of the optimizers' parameter groups
  sim::KeyForm keys = sim::KeyForm::kPrefixed;  ///< of modules
  std::optional<Code> fails = {};               ///< its load must be refused so, on all ranks
  std::string fails_says = {};  ///< part of the message that every rank must give then
  std::string engine = {};      ///< name and version that is written; empty: this program's
  std::optional<ForeignProgram> foreign = {};  ///< then there are no actions but damage

  /// Ranks of the world, members or not.
  std::int32_t world_size() const;
  /// True if that rank of the world is a member of the job.
  bool has_member(std::int32_t rank) const;
  /// Returns "0 to 3" or "1, 3": the members of the job, for people.
  std::string members_text() const;

  friend bool operator==(const IncarnationPlan&, const IncarnationPlan&) = default;
};

/// How the checkpoints of a scenario are written and read.
struct CheckpointPlan {
  Strictness strictness = Strictness::kRaiseAll;
  /// What is kept from one save to the next, of: local, global, loaded, distribution, metadata.
  std::vector<std::string> plans;
  bool optimizer = true;    ///< false: no save has it, whatever the save says
  bool random = true;       ///< likewise
  std::int64_t keep = 0;    ///< newest checkpoints that stay; 0: all
  bool falls_back = false;  ///< to the newest whole one
  bool checks = false;      ///< what is read against its checksums
  bool reads_once = false;  ///< what several ranks need
  bool async = false;       ///< saves are beside training, unless a save says otherwise
  bool late = false;        ///< their background runs when it is waited for, on the simulated lane
  std::int64_t in_flight = 1;      ///< saves, at most
  std::int64_t staging_bytes = 0;  ///< of a save; 0: as usual
  std::int64_t batch_bytes = 0;    ///< likewise
  /// Of the simulated lane's store.
  StoreCapabilities store = {.exchange = true};

  friend bool operator==(const CheckpointPlan&, const CheckpointPlan&) = default;
};

/// What a life that begins with a load may come to.
enum class Outcome : std::uint8_t {
  kContinued,  ///< from the newest committed checkpoint, or one whose save was interrupted
  kFellBack,   ///< from an older one that was committed
  kRefused,    ///< by a named error, on all ranks
};
std::string_view name_of(Outcome outcome);

struct Expectation {
  std::optional<Code> refusal;       ///< the run must end so, on all ranks
  std::string refusal_says;          ///< part of the message that every rank must give
  std::uint64_t elements_least = 0;  ///< that the last incarnation must have compared, all ranks
  bool every_rank_owns = true;       ///< false: a rank may hold nothing
  std::vector<Outcome> outcomes = {
      Outcome::kContinued};                          ///< that the lives after the first may have
  std::optional<std::int64_t> loaded_step;           ///< of the last life
  std::optional<std::string> diagnosis;              ///< of the last life that came to one
  std::optional<std::uint64_t> replans;              ///< of all lives together
  std::optional<std::vector<std::int64_t>> skipped;  ///< iterations, in the last life
  std::map<std::int64_t, double> rates;  ///< learning rates by step, as the last life took it
  std::vector<std::string> log;          ///< texts, each of which some line of the log must contain
  std::vector<std::string> silent;       ///< texts that no line of it may contain
  /// Ranks without any part of a tensor that the last life has, and that are held to their bound.
  std::optional<std::int64_t> empty_ranks;

  friend bool operator==(const Expectation&, const Expectation&) = default;
};

/// The element by which a recorded failure is known again.
struct RecordedDifference {
  std::int32_t rank = 0;
  std::string key;
  std::vector<std::int64_t> index;
  std::string saved;
  std::string loaded;

  friend bool operator==(const RecordedDifference&, const RecordedDifference&) = default;
};

/// What came of a run, kept in the file so that a replay can be compared with it.
struct Recorded {
  std::string verdict;
  std::string code;
  std::optional<RecordedDifference> first_difference;
  std::string event_hash;
  std::string commit;  ///< with a '+' if the tree had further changes
  std::string build;
  std::string mutant;  ///< that was switched on; empty: none
  std::uint64_t seed = 1;

  friend bool operator==(const Recorded&, const Recorded&) = default;
};

struct Scenario {
  std::string name;  ///< path below the catalogue without its ending, then the row of a table
  std::string file;  ///< as it was given
  std::string row;   ///< "[k=1,save=tp2-dp2]" of a table; else empty
  std::string proves;
  std::vector<std::string> tags;
  std::string model;
  sim::Sharding optimizer_sharding = sim::Sharding::kFullyReshardable;  ///< of the first life
  std::int64_t shard_dim = 0;  ///< the dimension that fsdp splits
  std::uint64_t seed = 1;
  std::int32_t ranks_per_node = 0;  ///< 0: all on one node
  bool random_by_dp = false;        ///< random streams begin otherwise on each rank of dp x cp
  std::int64_t rerun_samples = 0;   ///< after which a result can be a spike; 0: as usual
  sim::Schedule schedule = {};      ///< of learning rate and weight decay
  CheckpointPlan checkpoint;
  std::vector<IncarnationPlan> incarnations;
  Expectation expect;
  std::vector<std::string> caught;  ///< mutants that must fail here
  std::vector<LaneKind> lanes;
  std::string lanes_reason;  ///< why not all lanes
  std::optional<Recorded> recorded;

  friend bool operator==(const Scenario&, const Scenario&) = default;
};

/// The scenarios of one file: one, or the rows of its table. USAGE naming file and line.
std::vector<Scenario> parse_scenarios(const std::string& text, const std::string& file);
/// The same of a file that holds one; USAGE for a table.
Scenario parse_scenario(const std::string& text, const std::string& file);
Scenario read_scenario(const std::string& file);

/// The text of a file that is read into this scenario again.
std::string to_yaml(const Scenario& scenario);

}  // namespace reprise::driver
