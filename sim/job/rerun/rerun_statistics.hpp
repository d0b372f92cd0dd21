#pragma once
// Keeps the statistics of the rerun machine: the largest of the first values, and the differences
// between the results of initial runs and of re-runs.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "reprise/value.hpp"

namespace reprise::sim {

/// Keeps, for each name, the largest magnitude among the first finite values.
class LargeValues {
 public:
  struct Limits {
    std::int64_t samples = 100;
    double times = 10;  ///< a value is unexpected above this multiple of the largest magnitude
  };
  LargeValues() = default;
  explicit LargeValues(Limits limits) : limits_(limits) {}

  /// True if the value is unexpectedly large. While there are too few samples, returns false and
  /// records the value as a sample.
  bool unexpectedly_large(std::string_view name, double value);

  Value encode_counts() const;
  Value encode_maxima() const;
  /// Restores the statistics. Throws LOAD_REJECTED if the values do not have the right form.
  void decode(const Value& counts, const Value& maxima);

  struct Samples {
    std::int64_t count = 0;
    double largest = 0;
    friend bool operator==(const Samples&, const Samples&) = default;
  };
  const std::map<std::string, Samples, std::less<>>& by_name() const { return by_name_; }

 private:
  Limits limits_;
  std::map<std::string, Samples, std::less<>> by_name_;
};

/// Returns 0 if the numbers are equal or both NaN; infinity if only one is finite, or only one is
/// NaN; otherwise 2 |a - b| / |a + b|.
double relative_difference(double a, double b);

/// Differences between runs, for each message of a validation.
class DeterminismStatistics {
 public:
  void record(std::string_view message, double difference);
  void join(const DeterminismStatistics& other);
  void clear() { by_message_.clear(); }
  bool empty() const { return by_message_.empty(); }
  /// Returns one line per message.
  std::vector<std::string> lines() const;

  Bytes encode() const;
  static DeterminismStatistics decode(ByteSpan bytes);

 private:
  struct Differences {
    std::int64_t identical = 0;
    std::vector<double> others;
  };
  std::map<std::string, Differences, std::less<>> by_message_;
};

}  // namespace reprise::sim
