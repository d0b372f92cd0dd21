#pragma once
// A run whose work several machines share, and the one report that their reports make together.

#include <cstdint>
#include <string>
#include <vector>

namespace reprise::reports {

struct Report;

/// The work of `reprise search explore`. Shard N of a search has its seed plus N - 1.
inline constexpr const char* kTimelines = "timelines";

/// The share of the work that a report shows.
struct Shard {
  std::string work;  ///< what is shared: "scenarios", "properties", "mutants" or "timelines"
  std::uint64_t number = 1;  ///< counted from 1
  std::uint64_t of = 1;
  std::uint64_t whole = 0;  ///< number of items of all shards together; 0 if time ends it
};

/// Returns, for example, "scenarios: only shard 2 of 4 was run".
std::string text_of(const Shard& shard);

/// Notes in the report that it shows a share only. Does nothing if the shard is the whole work.
void put_shard(Report& report, const Shard& shard);

/// A report, and the file that it was read from.
struct NamedReport {
  std::string file;
  const Report* report = nullptr;
};

/// Returns what the reports show together. Work that was shared has the order that it would have
/// had on one machine, and is whole. Throws USAGE, with the file, if the reports are not of one
/// lane, commit, build, seed and mutant, if a shard is missing, or if an entry is in two of them.
Report merged(const std::vector<NamedReport>& reports);

}  // namespace reprise::reports
