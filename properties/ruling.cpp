#include "properties/ruling.hpp"

#include <array>

#include "core/base/check.hpp"

namespace reprise {
namespace {

constexpr std::array<std::string_view, 39> kNames = {
    "BIT_MISMATCH",
    "WRONG_OWNER",
    "SHIFTED_BYTES",
    "ZERO_FILL",
    "NOT_FILLED",
    "REPLICA_MISMATCH",
    "COVERAGE_GAP",
    "KEYSET_ASYMMETRY",
    "LOST_OBJECT",
    "COMMON_STATE_DIVERGES",
    "SHAPE_DRIFT",
    "DTYPE_DRIFT",
    "TRAJECTORY_DIVERGENCE",
    "ORACLE_VACUOUS",
    "FALSE_REPLICA",
    "NO_WRITER",
    "MULTI_WRITER",
    "STALE_DERIVED",
    "PERMUTED_SHARDS",
    "PERMUTED_COMPONENTS",
    "STALE_BYTES",
    "TORN_SNAPSHOT",
    "RNG_STREAM_COLLAPSE",
    "RNG_DRIFT",
    "LAYOUT_MISMATCH",
    "STALE_PLAN",
    "STALE_DISTRIBUTION",
    "CACHE_POISONED",
    "TRACKER_DANGLING",
    "LAST_GOOD_DELETED",
    "COMMIT_MISSING",
    "MIXED_GENERATION",
    "DATA_STREAM_SKIP",
    "ILLEGAL_STATE_PERSISTED",
    "RESTART_LOOP",
    "VERDICT_DISAGREEMENT",
    "MEM_PEAK_EXCEEDED",
    "RETENTION_EXCEEDED",
    "READ_TWICE",
};

}  // namespace

std::string_view name_of(Defect defect) {
  const auto index = static_cast<std::size_t>(defect);
  CHECK(index < kNames.size(), index);
  return kNames[index];
}

std::ostream& operator<<(std::ostream& out, const Ruling& ruling) {
  out << name_of(ruling.defect) << ": " << ruling.message;
  if (!ruling.rank && ruling.key.empty()) return out;
  out << " [";
  if (ruling.rank) out << "rank " << *ruling.rank << (ruling.key.empty() ? "" : ", ");
  if (!ruling.key.empty()) out << "key " << ruling.key;
  return out << ']';
}

}  // namespace reprise
