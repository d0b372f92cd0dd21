#pragma once
// What the machine counts: how large values usually are, and how far results of a re-run are from
// those of the initial run.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.hpp"
#include "reprise/value.hpp"

namespace reprise::sim {

/// By name, the largest magnitude of the first values. Finite ones alone count.
class LargeValues {
 public:
  struct Limits {
    std::int64_t samples = 100;
    double times = 10;  ///< the largest of them: from there on a value is unexpected
  };
  LargeValues() = default;
  explicit LargeValues(Limits limits) : limits_(limits) {}

  /// Takes it as a sample while there are too few, and says no.
  bool unexpectedly_large(std::string_view name, double value);

  Value encode_counts() const;
  Value encode_maxima() const;
  /// LOAD_REJECTED if they are not of that form.
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

/// 0 if both are the same or both no number; infinite where one alone is finite or a number; else
/// 2 |a - b| / |a + b|.
double relative_difference(double a, double b);

/// By message of the validation, how far re-runs were off.
class DeterminismStatistics {
 public:
  void record(std::string_view message, double difference);
  void join(const DeterminismStatistics& other);
  void clear() { by_message_.clear(); }
  bool empty() const { return by_message_.empty(); }
  /// One line for each message.
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
