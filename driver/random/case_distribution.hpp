#pragma once
// Counts how often random scenarios had each value of each axis, and each kind of change between a
// checkpoint and the job that loads it.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "driver/language/scenario.hpp"

namespace reprise::driver {

/// Returns the kinds of change from `saved` to `loading`. "EP", "FSDP" (ranks that shard), "TP",
/// "CP", "PP" (stages and their layers), "HSDP" (replicate x shard), "world up", "world down",
/// "order" and "sharding" are listed if any module has that change. "place" is a change from
/// disjoint to colocated modules or back.
std::vector<std::string> changes_between(const LifePlan& saved, const LifePlan& loading);

class CaseDistribution {
 public:
  void add(const Scenario& scenario);

  using Counts = std::map<std::string, std::map<std::string, std::uint64_t>>;
  /// Returns the number of cases by axis and value.
  const Counts& counts() const { return counts_; }
  std::uint64_t cases() const { return cases_; }
  /// Returns the number of cases with this value on this axis, such as ("change", "EP") or
  /// ("world", "5-8").
  std::uint64_t count(const std::string& axis, const std::string& value) const;
  /// Returns one line per axis, such as "change EP 41% FSDP 63% ...". A case that has two values of
  /// an axis is counted for both.
  std::string table() const;

 private:
  Counts counts_;
  std::uint64_t cases_ = 0;
};

}  // namespace reprise::driver
