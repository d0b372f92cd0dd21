#pragma once
// Defines report.json, which says what was run, what the run showed, and what it did not show.
// docs/report.md explains the fields. Counts are integers and keys are sorted, so equal runs give
// equal text except for the times.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/coverage.hpp"
#include "reports/exhaustive.hpp"
#include "reports/failure.hpp"
#include "reports/matrix.hpp"
#include "reports/shards.hpp"
#include "reports/words.hpp"

namespace reprise::reports {

enum class Verdict : std::uint8_t { kPass, kFail, kInconclusive, kNotRun };
/// "pass", "fail", "inconclusive" and "not_run".
Words words_of(Verdict verdict);

/// The outcome of a life (life): it ran without a load, it continued after a load, it fell
/// back to another checkpoint, its load was refused, a planned fault ended it, or an error ended
/// it.
enum class LifeOutcome : std::uint8_t { kRan, kContinued, kFellBack, kRefused, kCutShort, kFailed };
/// "ran", "continued", "fell_back", "refused", "cut_short" and "failed".
Words words_of(LifeOutcome outcome);

/// Lanes of reports, sorted by name. A report of lane kFiles is about stored checkpoints and
/// contains no run of a scenario. One of lane kWatch is about commands that were watched as they
/// are.
enum class ReportLane : std::uint8_t { kFiles, kGpu, kMpi, kProgram, kSim, kWatch };
/// "files", "gpu", "mpi", "program", "sim" and "watch".
Words words_of(ReportLane lane);

/// The GPU of a rank, and how NCCL sent the rank's data to others.
struct RankGpu {
  std::string node;
  std::string name;
  std::string uuid;    ///< 32 hexadecimal digits; not the same for any two devices
  std::string bus_id;  ///< address on the node's PCI bus
  /// As NCCL's log calls them, such as "P2P/CUMEM" and "NET/Socket/0"; empty if the rank sent
  /// nothing through NCCL, or if the log went elsewhere.
  std::vector<std::string> transports = {};
};

struct RankResult {
  std::int32_t rank = 0;
  std::int64_t loaded_step = -1;  ///< -1 if the rank loaded nothing
  bool owns = true;               ///< false if the rank holds no state and therefore compared none
  std::uint64_t compared = 0;     ///< number of tensors and objects compared
  std::uint64_t elements = 0;
  double max_delta = 0;  ///< written as a number, "nan" or "inf"
  std::uint64_t bit_mismatches = 0;
  bool metrics_finite = true;
  std::vector<std::string> not_stored;  ///< keys that were requested but are not in the checkpoint
  std::vector<std::string> not_requested;  ///< keys that are stored but no rank requested
  std::vector<std::string> excused;
  std::vector<std::string> shape_mismatches;
  std::vector<std::string> dtype_mismatches;
  std::optional<RankGpu> gpu = {};  ///< empty on lanes without GPUs, and in reports of old versions
};

struct Life {
  std::string layout;
  LifeOutcome outcome = LifeOutcome::kRan;
  std::string code = {};  ///< code that ended the life, if it was refused or failed
  int exit_code = 0;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
};

struct TrainingPoint {
  std::int64_t step = 0;
  double loss = 0;
  double lr = 0;
  double loss_scale = 0;
  std::optional<double> uninterrupted_loss;
  std::optional<double> uninterrupted_lr;
  std::optional<double> uninterrupted_loss_scale = {};
};

struct FirstDifference {
  std::int32_t rank = 0;
  std::string key;
  std::vector<std::int64_t> index;
  std::string saved;
  std::string loaded;
  std::string comes_from;  ///< where the value really comes from, if known
};

struct PeakBytes {
  std::uint64_t snapshot = 0;
  std::uint64_t stage = 0;
  std::uint64_t load = 0;
  /// Highest memory use of a rank without parts of tensors, over all saves and loads.
  std::uint64_t empty = 0;
};

/// The bounds that each operation declared before it began. `stage` includes snapshots.
struct BoundBytes {
  std::uint64_t stage = 0;
  std::uint64_t load = 0;
  /// Bound for a rank without parts of tensors; 0 if there was no such rank.
  std::uint64_t empty = 0;
};

/// A checkpoint that a life saved, and what became of it.
struct Generation {
  std::int64_t step = 0;
  std::size_t life = 0;  ///< index in ScenarioResult::lives
  /// kept: it is in the store after the last life. pruned: retention removed it. replaced: a later
  /// save of the same step took its place. damaged: the scenario or a lying store damaged or
  /// removed it. unfinished: its save did not end well, and the tracker does not name what it left.
  std::string state = {};
  std::vector<std::size_t> loaded_by = {};   ///< lives that loaded it
  std::vector<std::size_t> skipped_by = {};  ///< lives that fell back to an older one
};
/// Returns the words that Generation::state may be.
std::span<const std::string_view> generation_states();

struct FaultResult {
  std::string kind;
  std::int32_t rank = 0;
  bool armed = false;
  bool reached = false;
  bool fired = false;
  bool must_fire = true;  ///< false if the scenario can pass even if the fault does not fire
};

/// A try of a scenario that did not pass, after which the scenario was run once more.
struct EarlierTry {
  std::string code;
  std::string reason;
  double seconds = 0;
};

struct ScenarioResult {
  std::string name;
  std::string file;
  std::string proves;
  Verdict verdict = Verdict::kNotRun;
  std::string code;    ///< code of reprise/error.hpp or of a judge; empty on pass
  std::string reason;  ///< explanation in words
  double seconds = 0;
  std::string event_hash;  ///< empty if the lane has none
  std::int32_t world = 0;
  std::vector<std::string> layouts;
  PeakBytes peak_bytes;
  /// Empty if the report was made by an old version whose operations did not declare bounds.
  std::optional<BoundBytes> bound_bytes = {};
  std::vector<RankResult> ranks;
  std::vector<Life> lives;
  std::uint64_t replans = 0;
  std::string diagnosis;
  std::string content_digest;
  bool doubled = false;  ///< true if it ran twice and both runs were compared
  /// True if a save still ran in the background when its life ended and the next life began.
  /// Whether the checkpoint of that save exists then depends on timing.
  bool left_to_time = false;
  std::vector<TrainingPoint> trajectory;
  std::optional<FirstDifference> first_difference;
  /// Why and where the scenario did not pass; empty if it passed or was not run, and in reports of
  /// versions that did not write it.
  std::optional<Failure> failure = {};
  /// The checkpoints that the lives saved, in order; empty in reports of versions that did not
  /// write them.
  std::vector<Generation> generations = {};
  std::vector<FaultResult> faults;
  std::string replay;    ///< command line that repeats the scenario
  bool crashed = false;  ///< true if this program crashed while it ran the scenario
  /// Tries beside the one that the result describes.
  std::vector<EarlierTry> earlier_tries = {};
};

/// The random cases of one property.
struct PropertyResult {
  std::string name;
  std::uint64_t cases = 0;
  std::uint64_t seed = 0;
  Verdict verdict = Verdict::kNotRun;
  std::optional<std::string> counterexample = {};  ///< the smallest case that failed
  /// Code with which that case failed; empty on pass, and in reports of versions that did not write
  /// it.
  std::string code = {};
  /// Number of cases by axis and value; empty if the cases were not counted.
  std::map<std::string, std::map<std::string, std::uint64_t>> distribution = {};
};

/// A mutant: a historical defect that was switched on.
struct MutantResult {
  std::string name;
  std::string defect;
  bool caught = false;
  struct By {
    std::string scenario;  ///< scenario that caught the mutant; empty if a property did
    std::string verdict;
    std::string reason;
    std::string property = {};  ///< property that caught the mutant; empty if a scenario did
  };
  std::vector<By> caught_by;
  /// Number of random cases in which a property called the functions that the mutant breaks; 0 if
  /// only scenarios called them.
  std::uint64_t property_cases = 0;
};

/// Reason of the scenarios that were not run because a signal ended the run.
inline constexpr const char* kNotRunInterrupted = "the run was interrupted";
/// Reason of the scenarios that were not run because another one did not pass before.
inline constexpr const char* kNotRunAfterFailure =
    "an earlier scenario did not pass (--exit-first)";

struct Skipped {
  std::string scenario;
  std::string reason;
};

struct Project {
  std::string commit;
  bool dirty = false;
  std::string build;
};

struct Machine {
  std::string cpu;
  std::uint64_t memory = 0;
  std::vector<std::string> gpus;
  std::string mpi;
  std::string nccl;
  std::string cuda;
};

struct Report {
  Project project;
  ReportLane lane = ReportLane::kSim;
  Machine machine;
  std::string started;  ///< in UTC, ISO 8601
  double seconds = 0;
  std::string mutant = {};   ///< mutant that was switched on in all scenarios; empty if none
  std::uint64_t seed = 1;    ///< seed of the simulated scheduler
  bool interrupted = false;  ///< true if a signal ended the run early
  Verdict verdict = Verdict::kNotRun;
  std::vector<ScenarioResult> scenarios;
  std::uint64_t planned = 0;
  std::vector<Skipped> skipped;
  std::vector<PropertyResult> properties = {};
  std::vector<MutantResult> mutants;
  std::optional<Matrix> matrix = {};        ///< empty if no matrix of mutants was made
  std::vector<Exhaustive> exhaustive = {};  ///< one per space of layouts whose pairs were tried
  std::optional<Coverage> coverage = {};    ///< empty if no random timelines were searched
  std::vector<Shard> shards = {};           ///< empty if the report shows the whole of its work
  std::vector<std::string> not_claimed;
};

/// True if the result stands for a file that could not be read: it was not run, and has a code.
bool is_unreadable(const ScenarioResult& result);
/// True if the lane runs programs of others, which choose their exit codes and are not doubled.
bool runs_programs(ReportLane lane);
/// Returns the number of scenarios that ran twice.
std::uint64_t runs_doubled(const Report& report);
/// Returns the number of those whose second run took another course: their code says so.
std::uint64_t determinism_mismatches(const Report& report);
/// Returns fail if any scenario failed; otherwise inconclusive if any was inconclusive, not_run if
/// none ran, and pass in all other cases.
Verdict overall(const std::vector<ScenarioResult>& scenarios);
/// Returns the verdict on the whole report. Properties are judged in the same way as scenarios. A
/// mutant passes if it was caught and fails if it survived. A matrix of mutants fails if one
/// survived, and is inconclusive if one was never called. Pairs of layouts fail if one is wrong,
/// and are inconclusive if some are missing. A search of timelines fails if it found a failure, and
/// is inconclusive if it never reached some mark. The report fails if a run and its repetition
/// differ, and is inconclusive if the run was interrupted or a file could not be read.
Verdict overall(const Report& report);

/// Says whether mutants survived.
struct MutantsFinding {
  std::string code;  ///< VALIDATOR_VACUOUS if no mutant was caught, MUTANT_SURVIVED if some were;
                     ///< empty if all were
  std::string reason;
};
MutantsFinding judge_mutants(const std::vector<MutantResult>& mutants);

/// Binds the fields of parts that other documents have, too.
class Slot;
void bind(Slot& slot, RankResult& rank);
void bind(Slot& slot, TrainingPoint& point);
void bind(Slot& slot, FirstDifference& first);
void bind(Slot& slot, PeakBytes& bytes);
void bind(Slot& slot, BoundBytes& bytes);

/// Returns the document in canonical form: sorted keys, indented by two spaces, a newline at the
/// end.
std::string to_json(const Report& report);
/// Reads the output of to_json; writing the result with to_json gives the same text. Reading is
/// strict: a ReadError with the file and the field is thrown if the text is truncated, if a field
/// is missing or has the wrong type, or if a count is wrong. Unknown fields are ignored.
Report parse_report(const std::string& text, const std::string& file);
/// Jenkins reads JUnit files of at most 30 MB.
inline constexpr std::size_t kJunitBytesMax = 29'000'000;
/// Returns JUnit XML with the content of a report.json. The XML has the SHA-256 of the report.json
/// as a property of the test suite. If not everything fits, messages and texts are cut, all to the
/// same length; each says so. Names are never cut.
std::string to_junit(const Report& report, const std::string& report_sha256,
                     std::size_t bytes_max = kJunitBytesMax);
/// Returns how an earlier try ended, such as "HANG: rank 1 was not finished".
std::string ending_of(const EarlierTry& earlier);
/// Returns the fields of the scenario's failure, if it has one, and then how its earlier tries
/// ended.
std::vector<FailureField> fields_of(const ScenarioResult& result);
/// Returns the failure of a scenario as lines of text with one field each: first the cause, last
/// the command line that shows it again.
std::string to_block(const ScenarioResult& result);
/// Takes rank, element and values of a first difference into a failure.
void put_values(const FirstDifference& first, Failure& failure);
/// Makes `failure` agree with the verdict. If the scenario did not pass and nothing more is known,
/// takes the failure from the code, the reason and the first difference. Removes it on a pass.
void restate_failure(ScenarioResult& result);
/// Returns the results of the ranks of the last life as a table. Ranks with equal results
/// share a line; the rank with the failure has its own.
std::string to_rank_table(const ScenarioResult& result);
/// Returns the report as a table for a terminal of `columns` columns.
std::string to_table(const Report& report, int columns);

}  // namespace reprise::reports
