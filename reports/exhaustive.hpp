#pragma once
// The pairs of layouts of which each was tried: a checkpoint saved under the one, loaded under the
// other. The work may be cut into parts for several machines.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace reprise::reports {

struct ExhaustivePart {
  std::uint64_t part = 1;    ///< number of the part, counted from 1
  std::uint64_t pairs = 0;   ///< pairs that the part had to try
  std::uint64_t passed = 0;  ///< pairs that were compared without a difference, or rightly refused
  std::map<std::string, std::uint64_t> refused = {};  ///< those rightly refused, by code
  std::uint64_t wrong = 0;
  std::uint64_t elements = 0;  ///< elements compared, on all ranks
  std::uint64_t objects = 0;   ///< objects and common states compared, on all ranks
  double seconds = 0;
  std::string first_wrong = {};  ///< the first wrong pair, with rank, key and element
};

struct Exhaustive {
  std::string model;
  std::string sharding;
  bool hsdp = false;  ///< true if the layouts have every cut of dp into copies and shards
  std::uint64_t max_world = 0;
  std::uint64_t layouts = 0;
  std::uint64_t pairs = 0;                 ///< pairs of all parts: the square of `layouts`
  std::uint64_t of = 1;                    ///< number of parts
  std::vector<ExhaustivePart> parts = {};  ///< those that ran, by number

  std::uint64_t passed() const;
  /// Returns the name of the space: the sharding, and " hsdp" if the layouts are cut so. Pairs of
  /// one space never count for another.
  std::string space() const;
};

/// Returns all reasons why the parts do not show that all pairs passed: a part that is missing,
/// twice or not complete, counts that contradict each other, a wrong pair.
std::vector<std::string> flaws_of(const Exhaustive& exhaustive);
/// True if a pair is wrong.
bool is_wrong(const Exhaustive& exhaustive);

/// True if `other` cuts the same work into the same parts, so that parts of both can stand in one
/// report.
bool same_work(const Exhaustive& exhaustive, const Exhaustive& other);
/// Puts a part in its place. It replaces an older result of the same part.
void put_part(Exhaustive& exhaustive, const ExhaustivePart& part);

/// Puts work with a single part among that of other spaces. The part is added to the same work.
/// Other work of the same space is replaced.
void put_work(std::vector<Exhaustive>& all, const Exhaustive& work);

}  // namespace reprise::reports
