#pragma once
// Collects findings: what several ranks have in common stands once.

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "driver/watch/watch_judgement.hpp"

namespace reprise::driver {

class FindingBook {
 public:
  /// Adds a finding about one rank. Findings that differ only in ranks are made one.
  void add(std::int32_t rank, WatchFinding finding);
  /// Adds a finding about one name of one rank. Names with the same text and the same ranks are
  /// made one finding by take().
  void add_name(std::int32_t rank, const std::string& name, WatchFinding finding);
  /// Returns the findings in the order in which they were added, names first.
  std::vector<WatchFinding> take();

 private:
  std::vector<WatchFinding> findings_;
};

}  // namespace reprise::driver
