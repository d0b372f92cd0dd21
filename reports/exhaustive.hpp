#pragma once
// Results of trying all pairs of layouts. For each pair, a checkpoint is saved under one layout and
// loaded under the other. The work may be divided into parts for several machines.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace reprise::reports {

struct ExhaustivePart {
  std::uint64_t part = 1;    ///< number of the part, counted from 1
  std::uint64_t pairs = 0;   ///< pairs that the part had to try
  std::uint64_t passed = 0;  ///< pairs that were compared without a difference, or rightly refused
  std::map<std::string, std::uint64_t> refused = {};  ///< pairs rightly refused, by code
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
  std::vector<ExhaustivePart> parts = {};  ///< parts that ran, in order of their numbers

  std::uint64_t passed() const;
  /// Returns the name of the space: the sharding, and " hsdp" if the layouts are cut so. Pairs of
  /// one space never count for another.
  std::string space() const;
};

/// Returns all reasons why the parts do not prove that all pairs passed: a part that is missing,
/// listed twice or incomplete, counts that contradict each other, or a wrong pair.
std::vector<std::string> flaws_of(const Exhaustive& exhaustive);
/// True if a pair is wrong.
bool is_wrong(const Exhaustive& exhaustive);

/// True if both divide the same work into the same parts. Then one report can contain parts of
/// both.
bool same_work(const Exhaustive& exhaustive, const Exhaustive& other);
/// Inserts the part in the order of part numbers. Replaces an older result of the same part.
void put_part(Exhaustive& exhaustive, const ExhaustivePart& part);

/// Puts work with a single part among that of other spaces. The part is added to the same work.
/// Other work of the same space is replaced.
void put_work(std::vector<Exhaustive>& all, const Exhaustive& work);

}  // namespace reprise::reports
