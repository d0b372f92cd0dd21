#pragma once
// Evidence that one rank leaves of one incarnation, for the driver to judge. On lanes with real
// processes it is a file, so that a verdict does not depend on the launcher's exit code.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "properties/inventory.hpp"
#include "properties/replica_audit.hpp"
#include "properties/ruling_code.hpp"
#include "reports/report.hpp"
#include "scenarios/driver/history.hpp"
#include "sim/faults/fault_book.hpp"

namespace reprise::driver {

enum class Ending : std::uint8_t {
  kReturned,
  kFailed,  ///< ended by an Error: see `code` and `message`
  kDefect,  ///< ended by a mistake of ours
  kHung,    ///< it never came to an end
  kLost,    ///< it left no record
};

/// A judge's finding other than a different element.
struct RulingText {
  RulingCode code = Code::kInternal;
  std::string text;
  std::optional<std::int32_t> rank = {};  ///< subject of the ruling, if it is not the record's rank
};

/// One load: keys that this rank requested, and keys that the checkpoint holds.
struct LoadEvidence {
  std::int64_t step = -1;
  Inventory requested;
  Inventory stored;  ///< from rank 0 alone; empty if it could not be read
  std::vector<std::string> excused;
  std::uint64_t bytes_read = 0;  ///< payload bytes that this rank read
  /// Bytes that all ranks together may read; from rank 0 alone; 0: no limit.
  std::uint64_t bytes_allowed = 0;

  friend bool operator==(const LoadEvidence&, const LoadEvidence&) = default;
};

/// One save from this rank's point of view.
struct SaveEvidence {
  SavePoint point;
  /// Code of its failure; nothing: it ended well, or the rank did not see its end.
  std::optional<RulingCode> code = {};
  Inventory live;         ///< keys that this rank had to save
  Inventory stored;       ///< keys of the checkpoint right after the save; from the first rank
  bool reused = false;    ///< true if it used a cached plan
  Inventory padded = {};  ///< tensors of which this rank holds undefined elements
};

struct RankRecord {
  Ending ending = Ending::kLost;
  std::optional<RulingCode> code = {};  ///< code of the failure
  std::string message;                  ///< whole line of the failure
  reports::RankResult result;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::vector<reports::TrainingPoint> trajectory;
  std::optional<reports::FirstDifference> first_difference;
  std::vector<RulingText> rulings;
  std::vector<AuditPage> audits;    ///< one per save, even if the save failed later
  std::vector<LoadEvidence> loads;  ///< loads that finished
  bool read_began = false;          ///< by its last load: refused from then on, it leaves poison
  std::vector<SaveEvidence> saves;  ///< saves that began
  std::optional<Outcome> outcome;   ///< how the load at the start of the life ended
  int exit_code = 0;                ///< code with which the job asked to end
  std::string diagnosis;            ///< result of the rerun machine; empty: none
  std::uint64_t replans = 0;
  std::vector<std::int64_t> skipped;    ///< iterations
  std::vector<std::string> log;         ///< lines for the operator
  std::vector<sim::FaultState> faults;  ///< planned for this rank
  /// Keys of the uninterrupted job that this rank did not have when it was compared; sorted.
  Inventory absent;
  std::string content_digest;  ///< digest of the whole job at the end, equal on all ranks
  reports::PeakBytes peak_bytes;
  reports::BoundBytes bound_bytes;
  std::uint64_t asked =
      0;  ///< calls to the mutant's functions by this rank, if it has a process of its own
};

std::string to_json(const RankRecord& record);
std::string to_json(const Past& past);
/// Throws TORN_FILE if the text is not such a document.
RankRecord parse_record(const std::string& text, const std::string& file);
/// Takes the modules from the scenario.
Past parse_past(const std::string& text, const Scenario& scenario);

/// Records of all ranks of one incarnation.
struct IncarnationRecord {
  std::string layout;
  std::vector<RankRecord> ranks;    ///< members of the job
  std::int32_t world = 0;           ///< number of ranks of the world; 0: the members alone
  std::vector<RulingText> rulings;  ///< on what the life left in the store, and on its processes
  std::string event_hash;           ///< empty where the lane has none
  std::string launch_error;         ///< reason why the lane could not run it at all
  std::uint64_t asked = 0;          ///< calls to the mutant's functions by all ranks
};

/// True if some rank's log has a line that contains the text.
bool is_logged(const IncarnationRecord& life, std::string_view text);

}  // namespace reprise::driver
