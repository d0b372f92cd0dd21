#pragma once
// Are copies that ranks declare equal really equal? Asked of what the ranks hand to a save, before
// the engine keeps one copy of each and the others are gone.
//
//   rank 0: w [0:4] replica 0 hash a       rank 2: w [0:4] replica 1 hash b     a != b:
//   FALSE_REPLICA
//
// Each rank lists hashes alone; the pages of all ranks are compared outside of the job. Boxes that
// overlap and are not equal are the plan's business.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/state/state_dict.hpp"
#include "properties/ruling.hpp"

namespace reprise {

/// Elements whose bytes nobody defines, such as a bucket's padding: they count as zeros.
struct Undefined {
  std::string key;
  Box box;  ///< in the global tensor
};

/// One box of a tensor, or one object, as a rank hands it to a save.
struct HeldItem {
  std::string key;  ///< an object's with coordinate and grid
  Box box;          ///< of a tensor; without dimensions for an object
  std::int32_t replica = 0;
  /// Of the elements, row-major, cut into at most kAuditBlocks equal blocks (the last is shorter);
  /// one for an object.
  std::vector<std::uint64_t> hashes;

  friend bool operator==(const HeldItem&, const HeldItem&) = default;
};
inline constexpr std::int64_t kAuditBlocks = 8;

/// An entry of the common state's first level.
struct HeldCommon {
  std::string path;
  std::uint64_t hash = 0;

  friend bool operator==(const HeldCommon&, const HeldCommon&) = default;
};

/// What one rank handed to one save.
struct AuditPage {
  GlobalRank rank;
  std::int64_t step = 0;
  std::vector<HeldItem> items;  ///< sorted by key and box; empty boxes left out
  std::vector<HeldCommon> common;

  friend bool operator==(const AuditPage&, const AuditPage&) = default;
};

/// Host memory.
AuditPage audit_page(GlobalRank rank, Step step, const StateDict& saved,
                     std::span<const Undefined> undefined = {});

/// Returns "; the first that differs is ..." with the elements among which two copies of one box
/// differ first; empty for objects.
std::string differing_elements(const HeldItem& a, const HeldItem& b);

/// Are these the pages of all ranks? A page that is not there can hold the main copy.
enum class Pages : std::uint8_t { kAll, kSome };

/// FALSE_REPLICA for copies of one box or object that differ, naming both ranks and the elements
/// among which the first difference is; MULTI_WRITER for a second main copy; with all pages
/// NO_WRITER for none; COMMON_STATE_DIVERGES. At most one ruling of a kind for a key.
Rulings judge_replicas(std::span<const AuditPage> pages, Pages which);

}  // namespace reprise
