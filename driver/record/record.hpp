#pragma once
// Defines the evidence that a rank collects in one life, for the driver to judge. On lanes
// with real processes, the evidence is written to a file, so that a verdict does not depend on the
// launcher's exit code.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/record/history.hpp"
#include "properties/finding.hpp"
#include "properties/inventory.hpp"
#include "properties/replica_audit.hpp"
#include "reports/report.hpp"
#include "sim/faults/fault_book.hpp"
#include "sim/job/rerun/rerun_state.hpp"

namespace reprise::driver {

enum class Ending : std::uint8_t {
  kReturned,
  kFailed,  ///< ended with an Error: see `code` and `message`
  kDefect,  ///< ended because of a bug in our own code
  kHung,    ///< never ended
  kLost,    ///< was killed, or left no record
};
/// "returned", "failed", "defect", "hung" and "lost".
reports::Words words_of(Ending ending);
using judged::Finding;
using judged::Findings;
using judged::Severity;
using reports::name_of;

/// One load: the keys that this rank requested, and the keys that the checkpoint holds.
struct LoadEvidence {
  std::int64_t step = -1;
  Inventory requested;
  /// Keys of the checkpoint, on rank 0 only. No keys if the checkpoint could not be read.
  Inventory stored;
  std::vector<std::string> excused;
  std::uint64_t bytes_read = 0;  ///< payload bytes that this rank read
  /// Limit on the bytes that all ranks together may read; 0 if there is no limit. Set on rank 0
  /// only.
  std::uint64_t bytes_allowed = 0;

  friend bool operator==(const LoadEvidence&, const LoadEvidence&) = default;
};

/// One save as this rank saw it.
struct SaveEvidence {
  SavePoint point;
  /// Code of the save's failure. Empty if the save ended well or the rank did not see its end.
  std::optional<FindingCode> code = {};
  Inventory live;    ///< keys that this rank had to save
  Inventory stored;  ///< keys of the checkpoint right after the save; only the first rank has them
  bool reused = false;    ///< true if the save used a cached plan
  Inventory padded = {};  ///< tensors that have undefined elements on this rank
};

struct RankRecord {
  Ending ending = Ending::kLost;
  std::optional<FindingCode> code = {};  ///< code of the failure
  std::string message;                   ///< complete error message
  reports::RankResult result;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;  ///< iteration that the job reached, however the life ended
  /// The rank's last activity: start, load, train, save or end.
  std::string phase = "start";
  std::vector<reports::TrainingPoint> trajectory;
  std::optional<reports::FirstDifference> first_difference;
  Findings findings;
  std::vector<AuditPage> audits;    ///< one per save, even if the save failed later
  std::vector<LoadEvidence> loads;  ///< loads that finished
  /// True once the last load has begun to read. A load that is refused after that leaves poisoned
  /// tensors.
  bool read_began = false;
  std::vector<SaveEvidence> saves;  ///< saves that began
  std::optional<Outcome> outcome;   ///< how the load at the start of the life ended
  int exit_code = 0;                ///< exit code of the job
  /// Result of the rerun machine.
  sim::RerunDiagnosis diagnosis = sim::RerunDiagnosis::kNone;
  std::uint64_t replans = 0;
  std::vector<std::int64_t> skipped;    ///< iterations that were skipped
  std::vector<std::string> log;         ///< lines for the operator
  std::vector<sim::FaultState> faults;  ///< faults planned for this rank
  /// Keys that the uninterrupted job has, but this rank did not have when the two were compared.
  /// Sorted.
  Inventory absent;
  /// States of the saves and of the load that had not ended when the rank did: "save
  /// commit/swap_in".
  std::vector<std::string> unended;
  std::string content_digest;  ///< digest of the whole job at the end, the same on all ranks
  reports::PeakBytes peak_bytes;
  reports::BoundBytes bound_bytes;
  /// Number of calls to the mutant's functions; counted only if each rank is a separate process.
  std::uint64_t asked = 0;
};

std::string to_json(const RankRecord& record);
std::string to_json(const Past& past);
/// Reads a record. Throws TORN_FILE if the text is not a complete record.
RankRecord parse_record(const std::string& text, const std::string& file);
/// Reads a Past. Takes the modules from the scenario, because the text does not contain them.
Past parse_past(const std::string& text, const Scenario& scenario);

/// Records of all ranks of one life.
struct LifeRecord {
  std::string layout;
  std::vector<RankRecord> ranks;  ///< records of the members of the job
  std::int32_t world = 0;         ///< number of ranks of the world; 0 if all of them are members
  Findings findings;              ///< findings on the store and on the life's processes
  std::string event_hash;         ///< empty on lanes without event hashes
  std::uint64_t decisions = 0;    ///< how often the simulated scheduler chose a fiber
  std::uint64_t fibers = 0;       ///< fibers that it chose from: ranks and background tasks
  std::string launch_error;       ///< reason why the lane could not run the life at all
  std::uint64_t asked = 0;        ///< number of calls to the mutant's functions by all ranks
  /// True if the planned power cut after the life took a byte or a name.
  bool power_cut_took = false;
  /// Steps of the checkpoints in the store after the life, before the scenario damages any; empty
  /// if nobody has looked.
  std::optional<std::vector<std::int64_t>> stored_after = {};
  /// Step that the tracker named then; empty if it named none.
  std::optional<std::int64_t> tracked_after = {};
  /// Steps whose checkpoints had been damaged by then, or were damaged on purpose after the life.
  std::vector<std::int64_t> damaged_after = {};
};

/// True if some rank's log has a line that contains the text.
bool is_logged(const LifeRecord& life, std::string_view text);

/// Returns text such as "rank 3".
std::string rank_text(const RankRecord& rank);
/// Returns a finding on how this rank's life ended, or nothing if it is not to be stated.
std::optional<Finding> fail_at(const RankRecord& rank, FindingCode code, std::string text,
                               SourceLine line = SourceLine::here());
/// Returns the verdict of a finding; a pass if there is none.
reports::Verdict verdict_of(const std::optional<Finding>& found);

}  // namespace reprise::driver
