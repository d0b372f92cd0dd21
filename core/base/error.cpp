#include "core/base/error.hpp"

#include <array>
#include <utility>

namespace reprise {
namespace {

constexpr std::array kNames = {
    std::pair{Code::kUsage, std::string_view{"USAGE"}},
    std::pair{Code::kNotFound, std::string_view{"NOT_FOUND"}},
    std::pair{Code::kIo, std::string_view{"IO"}},
    std::pair{Code::kNoSpace, std::string_view{"NO_SPACE"}},
    std::pair{Code::kUnsupported, std::string_view{"UNSUPPORTED"}},
    std::pair{Code::kTornFile, std::string_view{"TORN_FILE"}},
    std::pair{Code::kRefusedName, std::string_view{"REFUSED_NAME"}},
    std::pair{Code::kPathEscape, std::string_view{"PATH_ESCAPE"}},
    std::pair{Code::kLimit, std::string_view{"LIMIT"}},
    std::pair{Code::kCoverageGap, std::string_view{"COVERAGE_GAP"}},
    std::pair{Code::kChunkOverlap, std::string_view{"CHUNK_OVERLAP"}},
    std::pair{Code::kNoWriter, std::string_view{"NO_WRITER"}},
    std::pair{Code::kMultiWriter, std::string_view{"MULTI_WRITER"}},
    std::pair{Code::kFalseReplica, std::string_view{"FALSE_REPLICA"}},
    std::pair{Code::kMissingKey, std::string_view{"MISSING_KEY_ON_LOAD"}},
    std::pair{Code::kUnrequestedKeys, std::string_view{"UNREQUESTED_KEYS"}},
    std::pair{Code::kShapeDrift, std::string_view{"SHAPE_DRIFT"}},
    std::pair{Code::kDtypeDrift, std::string_view{"DTYPE_DRIFT"}},
    std::pair{Code::kExtentMismatch, std::string_view{"EXTENT_MISMATCH"}},
    std::pair{Code::kCommonStateDiverges, std::string_view{"COMMON_STATE_DIVERGES"}},
    std::pair{Code::kLayoutMismatch, std::string_view{"LAYOUT_MISMATCH"}},
    std::pair{Code::kStalePlan, std::string_view{"STALE_PLAN"}},
    std::pair{Code::kStaleDistribution, std::string_view{"STALE_DISTRIBUTION"}},
    std::pair{Code::kStaleMetadata, std::string_view{"STALE_METADATA"}},
    std::pair{Code::kCachePoisoned, std::string_view{"CACHE_POISONED"}},
    std::pair{Code::kKeysetAsymmetry, std::string_view{"KEYSET_ASYMMETRY"}},
    std::pair{Code::kGroupCollision, std::string_view{"GROUP_COLLISION"}},
    std::pair{Code::kWrapperMissing, std::string_view{"WRAPPER_MISSING"}},
    std::pair{Code::kOwnerDisagreement, std::string_view{"OWNER_DISAGREEMENT"}},
    std::pair{Code::kGlobalFallback, std::string_view{"GLOBAL_FALLBACK"}},
    std::pair{Code::kIllegalState, std::string_view{"ILLEGAL_STATE_PERSISTED"}},
    std::pair{Code::kLoadRejected, std::string_view{"LOAD_REJECTED"}},
    std::pair{Code::kTrackerDangling, std::string_view{"TRACKER_DANGLING"}},
    std::pair{Code::kIncomplete, std::string_view{"INCOMPLETE_SELECTED"}},
    std::pair{Code::kForeignCheckpoint, std::string_view{"FOREIGN_CHECKPOINT"}},
    std::pair{Code::kChecksum, std::string_view{"CHECKSUM"}},
    std::pair{Code::kPeerFailed, std::string_view{"PEER_FAILED"}},
    std::pair{Code::kDeadline, std::string_view{"DEADLINE"}},
    std::pair{Code::kDeadlock, std::string_view{"HANG"}},
    std::pair{Code::kCollectiveMismatch, std::string_view{"COLLECTIVE_MISMATCH"}},
    std::pair{Code::kStaleDerived, std::string_view{"STALE_DERIVED"}},
    std::pair{Code::kInternal, std::string_view{"INTERNAL"}},
};

std::string compose(Code code, const std::string& message, const ErrorPlace& place) {
  std::string line{name_of(code)};
  line += ": " + message;
  std::string where;
  const auto add = [&where](const std::string& part) {
    where += (where.empty() ? " [" : ", ") + part;
  };
  if (place.rank) add("rank " + std::to_string(place.rank->value));
  if (!place.key.empty()) add("key " + place.key);
  if (!place.file.empty()) add("file " + place.file);
  if (place.offset) add("offset " + std::to_string(*place.offset));
  return where.empty() ? line : line + where + "]";
}

}  // namespace

std::string_view name_of(Code code) {
  for (const auto& [known, name] : kNames) {
    if (known == code) return name;
  }
  return "UNKNOWN";
}

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
