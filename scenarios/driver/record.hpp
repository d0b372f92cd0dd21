#pragma once
// What one rank leaves behind of one incarnation: the evidence that the driver judges by. On lanes
// with real processes it is a file, so that a verdict needs no launcher's exit code.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "properties/inventory.hpp"
#include "properties/replica_audit.hpp"
#include "reports/report.hpp"
#include "scenarios/driver/history.hpp"
#include "sim/faults/fault_book.hpp"

namespace reprise::driver {

enum class Ending : std::uint8_t {
  kReturned,
  kFailed,  ///< by an Error: `code` and `message` say which
  kDefect,  ///< by our own mistake
  kHung,    ///< it never came to an end
  kLost,    ///< it left no record
};

/// A judge's finding that is no difference of an element.
struct RulingText {
  Code code = Code::kInternal;
  std::string text;
  std::optional<std::int32_t> rank = {};  ///< that it is about, where a rank's record does not say
};

/// One load: what this rank asked for, and what the checkpoint holds.
struct LoadEvidence {
  std::int64_t step = -1;
  Inventory requested;
  Inventory stored;  ///< from rank 0 alone; empty where it could not be read
  std::vector<std::string> excused;
  std::uint64_t bytes_read = 0;  ///< of payload, by this rank
  /// That all ranks together may read; from rank 0 alone; 0: as many as they like.
  std::uint64_t bytes_allowed = 0;

  friend bool operator==(const LoadEvidence&, const LoadEvidence&) = default;
};

/// One save, as this rank saw it.
struct SaveEvidence {
  SavePoint point;
  /// By which it failed; nothing: it ended well, or the rank did not see its end.
  std::optional<Code> code = {};
  Inventory live;         ///< what this rank had that was to be saved
  Inventory stored;       ///< what the checkpoint held right afterwards; from the first rank alone
  bool reused = false;    ///< a plan from before
  Inventory padded = {};  ///< tensors of which this rank holds elements that nobody defines
};

struct RankRecord {
  Ending ending = Ending::kLost;
  std::optional<Code> code = {};  ///< of the failure
  std::string message;            ///< of the failure, whole line
  reports::RankResult result;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::vector<reports::TrainingPoint> trajectory;
  std::optional<reports::FirstDifference> first_difference;
  std::vector<RulingText> rulings;
  std::vector<AuditPage> audits;    ///< one a save; there even if the save then failed
  std::vector<LoadEvidence> loads;  ///< that came to their end
  bool read_began = false;          ///< in its last load: one that is refused then leaves poison
  std::vector<SaveEvidence> saves;  ///< that were begun
  std::optional<Outcome> outcome;   ///< of the load that the life began with
  int exit_code = 0;                ///< with which the job asked to end
  std::string diagnosis;            ///< of the rerun machine; empty: none
  std::uint64_t replans = 0;
  std::vector<std::int64_t> skipped;    ///< iterations
  std::vector<std::string> log;         ///< lines for the operator
  std::vector<sim::FaultState> faults;  ///< that were planned for this rank
  /// Tensors of the uninterrupted job of which this rank had none when it was compared; sorted.
  Inventory absent;
  std::string content_digest;  ///< of the whole job at the end, equal on all ranks
  reports::PeakBytes peak_bytes;
  reports::BoundBytes bound_bytes;
  std::uint64_t asked =
      0;  ///< calls of the mutant's functions by this rank; where it has a process
};

std::string to_json(const RankRecord& record);
std::string to_json(const Past& past);
/// TORN_FILE if it is no such document.
RankRecord parse_record(const std::string& text, const std::string& file);
/// Modules are the scenario's.
Past parse_past(const std::string& text, const Scenario& scenario);

/// All ranks of one incarnation.
struct IncarnationRecord {
  std::string layout;
  std::vector<RankRecord> ranks;    ///< members of the job
  std::int32_t world = 0;           ///< ranks of the world; 0: the members alone
  std::vector<RulingText> rulings;  ///< on what the life left: in the store, and of processes
  std::string event_hash;           ///< empty where the lane has none
  std::string launch_error;         ///< why the lane could not run it at all
  std::uint64_t asked = 0;          ///< calls of the mutant's functions, of all ranks
};

/// Whether some rank's log has a line with that text in it.
bool is_logged(const IncarnationRecord& life, std::string_view text);

}  // namespace reprise::driver
