#include "reprise/error.hpp"

#include <array>
#include <ostream>
#include <utility>

#include "core/base/codes.hpp"
#include "core/base/printable.hpp"

namespace reprise {
namespace {

struct Name {
  Code code;
  std::string_view text;
};

// Names in the order of the code numbers.
constexpr std::array kNames = {
    Name{Code::kUsage, "USAGE"},
    Name{Code::kNotFound, "NOT_FOUND"},
    Name{Code::kIo, "IO"},
    Name{Code::kNoSpace, "NO_SPACE"},
    Name{Code::kLocked, "LOCKED"},
    Name{Code::kUnsupported, "UNSUPPORTED"},
    Name{Code::kTornFile, "TORN_FILE"},
    Name{Code::kRefusedName, "REFUSED_NAME"},
    Name{Code::kPathEscape, "PATH_ESCAPE"},
    Name{Code::kLimit, "LIMIT"},
    Name{Code::kCoverageGap, "COVERAGE_GAP"},
    Name{Code::kChunkOverlap, "CHUNK_OVERLAP"},
    Name{Code::kNoWriter, "NO_WRITER"},
    Name{Code::kMultiWriter, "MULTI_WRITER"},
    Name{Code::kFalseReplica, "FALSE_REPLICA"},
    Name{Code::kNotStored, "NOT_STORED"},
    Name{Code::kNotRequested, "NOT_REQUESTED"},
    Name{Code::kShapeDrift, "SHAPE_DRIFT"},
    Name{Code::kDtypeDrift, "DTYPE_DRIFT"},
    Name{Code::kExtentMismatch, "EXTENT_MISMATCH"},
    Name{Code::kCommonStateDiverges, "COMMON_STATE_DIVERGES"},
    Name{Code::kLayoutMismatch, "LAYOUT_MISMATCH"},
    Name{Code::kStalePlan, "STALE_PLAN"},
    Name{Code::kStaleDistribution, "STALE_DISTRIBUTION"},
    Name{Code::kStaleMetadata, "STALE_METADATA"},
    Name{Code::kCachePoisoned, "CACHE_POISONED"},
    Name{Code::kKeysetAsymmetry, "KEYSET_ASYMMETRY"},
    Name{Code::kOwnerDisagreement, "OWNER_DISAGREEMENT"},
    Name{Code::kGroupCollision, "GROUP_COLLISION"},
    Name{Code::kWrapperMissing, "WRAPPER_MISSING"},
    Name{Code::kGlobalFallback, "GLOBAL_FALLBACK"},
    Name{Code::kIllegalStatePersisted, "ILLEGAL_STATE_PERSISTED"},
    Name{Code::kLoadRejected, "LOAD_REJECTED"},
    Name{Code::kTrackerDangling, "TRACKER_DANGLING"},
    Name{Code::kIncompleteSelected, "INCOMPLETE_SELECTED"},
    Name{Code::kForeignCheckpoint, "FOREIGN_CHECKPOINT"},
    Name{Code::kChecksum, "CHECKSUM"},
    Name{Code::kPeerFailed, "PEER_FAILED"},
    Name{Code::kDeadline, "DEADLINE"},
    Name{Code::kHang, "HANG"},
    Name{Code::kCollectiveMismatch, "COLLECTIVE_MISMATCH"},
    Name{Code::kStaleDerived, "STALE_DERIVED"},
    Name{Code::kInternal, "INTERNAL"},
    Name{judged::kBitMismatch, "BIT_MISMATCH"},
    Name{judged::kWrongOwner, "WRONG_OWNER"},
    Name{judged::kShiftedBytes, "SHIFTED_BYTES"},
    Name{judged::kZeroFill, "ZERO_FILL"},
    Name{judged::kNotFilled, "NOT_FILLED"},
    Name{judged::kReplicaMismatch, "REPLICA_MISMATCH"},
    Name{judged::kLostObject, "LOST_OBJECT"},
    Name{judged::kTrajectoryDivergence, "TRAJECTORY_DIVERGENCE"},
    Name{judged::kOracleVacuous, "ORACLE_VACUOUS"},
    Name{judged::kPermutedShards, "PERMUTED_SHARDS"},
    Name{judged::kPermutedComponents, "PERMUTED_COMPONENTS"},
    Name{judged::kStaleBytes, "STALE_BYTES"},
    Name{judged::kTornSnapshot, "TORN_SNAPSHOT"},
    Name{judged::kRngStreamCollapse, "RNG_STREAM_COLLAPSE"},
    Name{judged::kRngDrift, "RNG_DRIFT"},
    Name{judged::kLastGoodDeleted, "LAST_GOOD_DELETED"},
    Name{judged::kCommitMissing, "COMMIT_MISSING"},
    Name{judged::kMixedGeneration, "MIXED_GENERATION"},
    Name{judged::kDataStreamSkip, "DATA_STREAM_SKIP"},
    Name{judged::kRestartLoop, "RESTART_LOOP"},
    Name{judged::kVerdictDisagreement, "VERDICT_DISAGREEMENT"},
    Name{judged::kMemPeakExceeded, "MEM_PEAK_EXCEEDED"},
    Name{judged::kRetentionExceeded, "RETENTION_EXCEEDED"},
    Name{judged::kReadTwice, "READ_TWICE"},
    Name{judged::kScheduleDrift, "SCHEDULE_DRIFT"},
    Name{judged::kContentDiffers, "CONTENT_DIFFERS"},
    Name{judged::kNotDeterministic, "NOT_DETERMINISTIC"},
    Name{judged::kLanesDisagree, "LANES_DISAGREE"},
    Name{judged::kMutantSurvived, "MUTANT_SURVIVED"},
    Name{judged::kValidatorVacuous, "VALIDATOR_VACUOUS"},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (static_cast<std::size_t>(kNames[i].code) != i) return false;
  }
  return true;
}
static_assert(kNames.size() == kCodes && is_in_order());

std::string compose(Code code, const std::string& message, const ErrorPlace& place) {
  std::string line{name_of(code)};
  line += ": " + printable(message);
  std::string where;
  const auto add = [&where](const std::string& part) {
    where += (where.empty() ? " [" : ", ") + part;
  };
  if (place.rank) add("rank " + std::to_string(place.rank->value));
  if (!place.key.empty()) add("key " + printable(place.key));
  if (!place.file.empty()) add("file " + printable(place.file));
  if (place.offset) add("offset " + std::to_string(*place.offset));
  return where.empty() ? line : line + where + "]";
}

}  // namespace

std::string_view name_of(Code code) {
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? kNames[index].text : "UNKNOWN";
}

std::ostream& operator<<(std::ostream& out, Code code) { return out << name_of(code); }

std::optional<Code> code_named(std::string_view name) {
  for (const auto& [code, known] : kNames) {
    if (known == name) return code;
  }
  return std::nullopt;
}

Error::Error(Code code, std::string message, ErrorPlace place)
    : code_(code),
      message_(std::move(message)),
      place_(std::move(place)),
      what_(compose(code_, message_, place_)) {}

Error Error::within(const ErrorPlace& outer) const {
  ErrorPlace place = place_;
  if (!place.rank) place.rank = outer.rank;
  if (place.key.empty()) place.key = outer.key;
  if (place.file.empty()) place.file = outer.file;
  if (!place.offset) place.offset = outer.offset;
  return Error(code_, message_, std::move(place));
}

}  // namespace reprise
