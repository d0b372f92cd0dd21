#pragma once
// Statistics of the machine: usual sizes of values, and the differences between results of a re-run
// and of the initial run.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "reprise/value.hpp"

namespace reprise::sim {

/// The largest magnitude among the first finite values of each name.
class LargeValues {
 public:
  struct Limits {
    std::int64_t samples = 100;
    double times = 10;  ///< factor of the largest above which a value is unexpected
  };
  LargeValues() = default;
  explicit LargeValues(Limits limits) : limits_(limits) {}

  /// Returns false and takes the value as a sample while there are too few.
  bool unexpectedly_large(std::string_view name, double value);

  Value encode_counts() const;
  Value encode_maxima() const;
  /// Throws LOAD_REJECTED if the values do not have that form.
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

/// Returns 0 if both are equal or both NaN; infinity if only one is finite or a number; else 2 |a -
/// b| / |a + b|.
double relative_difference(double a, double b);

/// Differences of re-runs by message of the validation.
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
