#include "reprise/error.hpp"

#include <algorithm>
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

// Must stay sorted by number, because lookups use binary search.
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
    Name{Code::kInterrupted, "INTERRUPTED"},
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
    Name{passed_on::kGroupCollision, "GROUP_COLLISION"},
    Name{passed_on::kWrapperMissing, "WRAPPER_MISSING"},
    Name{passed_on::kGlobalFallback, "GLOBAL_FALLBACK"},
    Name{passed_on::kIllegalStatePersisted, "ILLEGAL_STATE_PERSISTED"},
    Name{Code::kLoadRejected, "LOAD_REJECTED"},
    Name{Code::kTrackerDangling, "TRACKER_DANGLING"},
    Name{Code::kIncompleteSelected, "INCOMPLETE_SELECTED"},
    Name{passed_on::kForeignCheckpoint, "FOREIGN_CHECKPOINT"},
    Name{Code::kChecksum, "CHECKSUM"},
    Name{Code::kPeerFailed, "PEER_FAILED"},
    Name{Code::kDeadline, "DEADLINE"},
    Name{passed_on::kHang, "HANG"},
    Name{Code::kCollectiveMismatch, "COLLECTIVE_MISMATCH"},
    Name{passed_on::kStaleDerived, "STALE_DERIVED"},
    Name{Code::kInternal, "INTERNAL"},
};

constexpr bool is_before(const Name& a, const Name& b) { return a.code < b.code; }
static_assert(std::is_sorted(kNames.begin(), kNames.end(), is_before) &&
              static_cast<std::uint32_t>(kNames.back().code) + 1 == kErrorCodesEnd);

/// Returns the table entry of a code; null if no Error can have this code.
const Name* entry_of(Code code) {
  const auto at = std::lower_bound(kNames.begin(), kNames.end(), Name{code, {}}, is_before);
  return at != kNames.end() && at->code == code ? &*at : nullptr;
}

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
  const Name* found = entry_of(code);
  return found != nullptr ? found->text : "UNKNOWN";
}

std::ostream& operator<<(std::ostream& out, Code code) { return out << name_of(code); }

bool is_error(Code code) { return entry_of(code) != nullptr; }

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
