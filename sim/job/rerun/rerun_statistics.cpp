#include "sim/job/rerun/rerun_statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sstream>

#include "core/base/check.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

[[noreturn]] void refuse_statistics(const std::string& what) {
  throw Error(Code::kLoadRejected, "the stored statistics of large values " + what,
              {.key = "rerun_state_machine_state"});
}

const std::string& name_in(const Value& key) {
  const auto* name = key.as<std::string>();
  if (name == nullptr) refuse_statistics("have a name that is not a string");
  return *name;
}

void append_text(Bytes& out, std::string_view text) {
  append_le(out, static_cast<std::uint64_t>(text.size()));
  append(out, as_bytes(text));
}

/// Reads the values that append_* wrote.
class Cursor {
 public:
  explicit Cursor(ByteSpan bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  template <class T>
  T next() {
    const T value = load_le<T>(take(sizeof(T)));
    return value;
  }
  std::string text() { return std::string(as_text(take(next<std::uint64_t>()))); }

 private:
  ByteSpan take(std::size_t count) {
    CHECK(count <= rest_.size(), count, rest_.size());
    const ByteSpan taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  ByteSpan rest_;
};

}  // namespace

bool LargeValues::unexpectedly_large(std::string_view name, double value) {
  const double magnitude = std::fabs(value);
  if (!std::isfinite(magnitude)) return false;
  Samples& samples = by_name_[std::string(name)];
  if (samples.count < limits_.samples) {
    ++samples.count;
    samples.largest = std::max(samples.largest, magnitude);
    return false;
  }
  return magnitude >= samples.largest * limits_.times;
}

Value LargeValues::encode_counts() const {
  Dict counts;
  for (const auto& [name, samples] : by_name_) counts.emplace_back(name, samples.count);
  return counts;
}

Value LargeValues::encode_maxima() const {
  Dict maxima;
  for (const auto& [name, samples] : by_name_) maxima.emplace_back(name, samples.largest);
  return maxima;
}

void LargeValues::decode(const Value& counts, const Value& maxima) {
  const auto* by_name = counts.as<Dict>();
  const auto* largest = maxima.as<Dict>();
  if (by_name == nullptr || largest == nullptr) refuse_statistics("are not dicts");
  by_name_.clear();
  for (const auto& [key, value] : *by_name) {
    const std::string& name = name_in(key);
    const auto* count = value.as<std::int64_t>();
    const Value* maximum = maxima.find(name);
    const auto* number = maximum == nullptr ? nullptr : maximum->as<double>();
    if (count == nullptr || number == nullptr)
      refuse_statistics("have no count and maximum of '" + name + "'");
    by_name_[name] = {*count, *number};
  }
}

double relative_difference(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return std::fabs((a - b) / (a + b) * 2);
}

void DeterminismStatistics::record(std::string_view message, double difference) {
  Differences& all = by_message_[std::string(message)];
  if (difference == 0) {
    ++all.identical;
  } else {
    all.others.push_back(difference);
  }
}

void DeterminismStatistics::join(const DeterminismStatistics& other) {
  for (const auto& [message, differences] : other.by_message_) {
    Differences& all = by_message_[message];
    all.identical += differences.identical;
    all.others.insert(all.others.end(), differences.others.begin(), differences.others.end());
  }
}

std::vector<std::string> DeterminismStatistics::lines() const {
  std::vector<std::string> lines;
  for (const auto& [message, differences] : by_message_) {
    std::ostringstream out;
    const auto samples =
        differences.identical + static_cast<std::int64_t>(differences.others.size());
    out << "'" << message << "': " << samples << " samples, " << differences.identical
        << " identical";
    if (!differences.others.empty()) {
      double sum = 0;
      for (const double one : differences.others) sum += one;
      out << ", relative difference " << sum / static_cast<double>(samples) << " on average, "
          << *std::max_element(differences.others.begin(), differences.others.end()) << " at most";
    }
    lines.push_back(out.str());
  }
  return lines;
}

Bytes DeterminismStatistics::encode() const {
  Bytes out;
  for (const auto& [message, differences] : by_message_) {
    append_text(out, message);
    append_le(out, differences.identical);
    append_le(out, static_cast<std::uint64_t>(differences.others.size()));
    for (const double one : differences.others) append_le(out, one);
  }
  return out;
}

DeterminismStatistics DeterminismStatistics::decode(ByteSpan bytes) {
  DeterminismStatistics statistics;
  Cursor in(bytes);
  while (!in.done()) {
    Differences& all = statistics.by_message_[in.text()];
    all.identical = in.next<std::int64_t>();
    all.others.resize(in.next<std::uint64_t>());
    for (double& one : all.others) one = in.next<double>();
  }
  return statistics;
}

}  // namespace reprise::sim
