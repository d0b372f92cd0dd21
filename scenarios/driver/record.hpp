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
  std::string code;
  std::string text;
};

/// One load: what this rank asked for, and what the checkpoint holds.
struct LoadEvidence {
  std::int64_t step = -1;
  Inventory requested;
  Inventory stored;  ///< from rank 0 alone; empty where it could not be read
  std::vector<std::string> excused;

  friend bool operator==(const LoadEvidence&, const LoadEvidence&) = default;
};

struct RankRecord {
  Ending ending = Ending::kLost;
  std::string code;     ///< of the failure
  std::string message;  ///< of the failure, whole line
  reports::RankResult result;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::vector<reports::TrainingPoint> trajectory;
  std::optional<reports::FirstDifference> first_difference;
  std::vector<RulingText> rulings;
  std::vector<AuditPage> audits;    ///< one a save; there even if the save then failed
  std::vector<LoadEvidence> loads;  ///< that came to their end
  /// Tensors of the uninterrupted job of which this rank had none when it was compared; sorted.
  Inventory absent;
  std::string content_digest;  ///< of the whole job at the end, equal on all ranks
  reports::PeakBytes peak_bytes;
};

std::string to_json(const RankRecord& record);
/// TORN_FILE if it is no such document.
RankRecord parse_record(const std::string& text, const std::string& file);

/// All ranks of one incarnation.
struct IncarnationRecord {
  std::string layout;
  std::vector<RankRecord> ranks;
  std::string event_hash;    ///< empty where the lane has none
  std::string launch_error;  ///< why the lane could not run it at all
};

}  // namespace reprise::driver
