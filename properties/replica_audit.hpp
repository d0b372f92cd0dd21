#pragma once
// Checks that copies declared equal are equal. It looks at the states that ranks pass to a save,
// before the engine keeps one copy of each and drops the others.
//
//   rank 0: w [0:4] replica 0 hash a       rank 2: w [0:4] replica 1 hash b     a != b:
//   FALSE_REPLICA
//
// Each rank lists only hashes; the pages of all ranks are compared outside the job. Boxes that
// overlap without being equal are checked by the plan.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/state/state_dict.hpp"
#include "properties/ruling.hpp"

namespace reprise {

/// Elements without defined bytes, such as a bucket's padding: they count as zeros.
struct Undefined {
  std::string key;
  Box box;  ///< box in the global tensor
};

/// One box of a tensor, or one object, that a rank passes to a save.
struct HeldItem {
  std::string key;  ///< key; an object's includes the coordinate
  Box box;          ///< box of a tensor; without dimensions for an object
  std::int32_t replica = 0;
  /// Hashes of the elements, row-major, in at most kAuditBlocks equal blocks (the last is shorter);
  /// one hash for an object.
  std::vector<std::uint64_t> hashes;

  friend bool operator==(const HeldItem&, const HeldItem&) = default;
};
inline constexpr std::int64_t kAuditBlocks = 8;

/// An entry at the first level of the common state.
struct HeldCommon {
  std::string path;
  std::uint64_t hash = 0;

  friend bool operator==(const HeldCommon&, const HeldCommon&) = default;
};

/// Everything that one rank passed to one save.
struct AuditPage {
  GlobalRank rank;
  std::int64_t step = 0;
  std::vector<HeldItem> items;  ///< sorted by key and box, without empty boxes
  std::vector<HeldCommon> common;

  friend bool operator==(const AuditPage&, const AuditPage&) = default;
};

/// The state is in host memory.
AuditPage audit_page(GlobalRank rank, Step step, const StateDict& saved,
                     std::span<const Undefined> undefined = {});

/// Returns "; the first that differs is ..." with the block of elements in which two copies of one
/// box first differ; empty for objects.
std::string differing_elements(const HeldItem& a, const HeldItem& b);

/// kAll if the pages of all ranks are present. A missing page can hold the main copy.
enum class Pages : std::uint8_t { kAll, kSome };

/// Finds FALSE_REPLICA if copies of one box or object differ, with both ranks and the block of the
/// first difference; MULTI_WRITER for a second main copy; NO_WRITER for none, if all pages are
/// present; COMMON_STATE_DIVERGES. At most one ruling of a kind per key.
Rulings judge_replicas(std::span<const AuditPage> pages, Pages which);

}  // namespace reprise
