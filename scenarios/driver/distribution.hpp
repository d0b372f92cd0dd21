#pragma once
// What random scenarios were made of: how often each value of each axis came up, and each kind of
// change between a checkpoint and the job that loads it.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/driver/scenario.hpp"

namespace reprise::driver {

/// Kinds of change: "EP", "FSDP" (ranks that shard), "TP", "CP", "PP" (stages and layers on them),
/// "HSDP" (replicate x shard), "world up", "world down", "order", "sharding"; of any module, and
/// "place": from disjoint to colocated or back.
std::vector<std::string_view> changes_between(const IncarnationPlan& saved,
                                              const IncarnationPlan& loading);

class Distribution {
 public:
  void add(const Scenario& scenario);

  using Counts = std::map<std::string, std::map<std::string, std::uint64_t>>;
  /// Axis, value, cases in which it came up.
  const Counts& counts() const { return counts_; }
  std::uint64_t cases() const { return cases_; }
  /// Cases in which that value of that axis came up: ("change", "EP"), ("world", "5-8").
  std::uint64_t count(const std::string& axis, const std::string& value) const;
  /// One line an axis: "change   EP 41%  FSDP 63% ...". A case with several values counts in each.
  std::string table() const;

 private:
  Counts counts_;
  std::uint64_t cases_ = 0;
};

}  // namespace reprise::driver
