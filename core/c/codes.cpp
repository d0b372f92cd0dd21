#include "core/c/codes.hpp"

#include <algorithm>
#include <array>

#include "reprise/c.h"

namespace reprise::c {
namespace {

struct Row {
  std::int32_t number;
  Code code;
};

constexpr std::array kRows = {
    Row{RP_USAGE, Code::kUsage},
    Row{RP_NOT_FOUND, Code::kNotFound},
    Row{RP_IO, Code::kIo},
    Row{RP_NO_SPACE, Code::kNoSpace},
    Row{RP_LOCKED, Code::kLocked},
    Row{RP_UNSUPPORTED, Code::kUnsupported},
    Row{RP_TORN_FILE, Code::kTornFile},
    Row{RP_REFUSED_NAME, Code::kRefusedName},
    Row{RP_PATH_ESCAPE, Code::kPathEscape},
    Row{RP_LIMIT, Code::kLimit},
    Row{RP_COVERAGE_GAP, Code::kCoverageGap},
    Row{RP_CHUNK_OVERLAP, Code::kChunkOverlap},
    Row{RP_NO_WRITER, Code::kNoWriter},
    Row{RP_MULTI_WRITER, Code::kMultiWriter},
    Row{RP_INTERRUPTED, Code::kInterrupted},
    Row{RP_NOT_STORED, Code::kNotStored},
    Row{RP_NOT_REQUESTED, Code::kNotRequested},
    Row{RP_SHAPE_DRIFT, Code::kShapeDrift},
    Row{RP_DTYPE_DRIFT, Code::kDtypeDrift},
    Row{RP_EXTENT_MISMATCH, Code::kExtentMismatch},
    Row{RP_COMMON_STATE_DIVERGES, Code::kCommonStateDiverges},
    Row{RP_LAYOUT_MISMATCH, Code::kLayoutMismatch},
    Row{RP_STALE_PLAN, Code::kStalePlan},
    Row{RP_STALE_DISTRIBUTION, Code::kStaleDistribution},
    Row{RP_STALE_METADATA, Code::kStaleMetadata},
    Row{RP_CACHE_POISONED, Code::kCachePoisoned},
    Row{RP_LOAD_REJECTED, Code::kLoadRejected},
    Row{RP_TRACKER_DANGLING, Code::kTrackerDangling},
    Row{RP_INCOMPLETE_SELECTED, Code::kIncompleteSelected},
    Row{RP_CHECKSUM, Code::kChecksum},
    Row{RP_PEER_FAILED, Code::kPeerFailed},
    Row{RP_DEADLINE, Code::kDeadline},
    Row{RP_COLLECTIVE_MISMATCH, Code::kCollectiveMismatch},
    Row{RP_INTERNAL, Code::kInternal},
};

}  // namespace

std::int32_t number_of(Code code) {
  const auto at = std::ranges::find(kRows, code, &Row::code);
  return at != kRows.end() ? at->number : RP_INTERNAL;
}

std::optional<Code> code_numbered(std::int32_t number) {
  const auto at = std::ranges::find(kRows, number, &Row::number);
  return at != kRows.end() ? std::optional(at->code) : std::nullopt;
}

}  // namespace reprise::c
