#pragma once
// Checks that copies declared equal are equal. Looks at the states that ranks pass to a save,
// before the engine keeps one copy of each item and drops the others.
//
//   rank 0: w [0:4] replica 0 hash a
//   rank 2: w [0:4] replica 1 hash b     a != b:   FALSE_REPLICA
//
// Each rank writes a page that contains only hashes. The pages of all ranks are compared outside
// the job. Boxes that overlap but are not equal are not judged here; the check of the save's plan
// finds them.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/state/state_dict.hpp"
#include "properties/finding.hpp"

namespace reprise {

/// Elements whose bytes are not defined, such as the padding of a bucket. They count as zeros.
struct Undefined {
  std::string key;
  Box box;  ///< box in the global tensor
};

/// One box of a tensor, or one object, that a rank passes to a save.
struct HeldItem {
  std::string key;  ///< for an object, it includes the coordinate
  Box box;          ///< box of a tensor; for an object, a box without dimensions
  std::int32_t replica = 0;
  /// One hash per block of elements. The elements, in row-major order, form at most kAuditBlocks
  /// blocks of equal size; the last block may be shorter. An object has one hash.
  std::vector<std::uint64_t> hashes;

  friend bool operator==(const HeldItem&, const HeldItem&) = default;
};
inline constexpr std::int64_t kAuditBlocks = 8;

/// One entry at the first level of the common state.
struct HeldCommon {
  std::string path;
  std::uint64_t hash = 0;

  friend bool operator==(const HeldCommon&, const HeldCommon&) = default;
};

/// The hashes of everything that one rank passed to one save.
struct AuditPage {
  GlobalRank rank;
  std::int64_t step = 0;
  std::vector<HeldItem> items;  ///< sorted by key and box, without empty boxes
  std::vector<HeldCommon> common;

  friend bool operator==(const AuditPage&, const AuditPage&) = default;
};

/// Makes the page of a rank. The state must be in host memory.
AuditPage audit_page(GlobalRank rank, Step step, const StateDict& saved,
                     std::span<const Undefined> undefined = {});

/// Returns text that names the first block of elements in which two copies of one box differ: ";
/// the first that differs is ...". Empty for objects.
std::string differing_elements(const HeldItem& a, const HeldItem& b);

/// Says whether the pages of all ranks are present. If a page is missing, it may list a main copy
/// that is on no other page.
enum class Pages : std::uint8_t { kAll, kSome };

/// Reports FALSE_REPLICA if copies of one box or object differ; the message contains both ranks and
/// the first block that differs. Reports MULTI_WRITER if there is a second main copy, and NO_WRITER
/// if all pages are present and there is no main copy. Reports COMMON_STATE_DIVERGES if ranks have
/// different common states. Reports each code at most once per key.
judged::Findings judge_replicas(std::span<const AuditPage> pages, Pages which);

}  // namespace reprise
