#pragma once
// What the engine did, for logs, event hashes and reports.

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/ids.hpp"

namespace reprise {

/// A phase has two ends; what is traced without one is its end.
enum class Moment : std::uint8_t { kBegin, kEnd };

struct TraceEvent {
  std::string_view phase;  ///< plan, agree, stage, write, vote, commit, load, ...
  std::string detail;      ///< key, file or step of a protocol
  std::uint64_t bytes = 0;
  std::uint64_t items = 0;
  Moment moment = Moment::kEnd;
};

class Trace {
 public:
  virtual ~Trace() = default;
  virtual void event(const TraceEvent& event) = 0;
};

/// Progress of long work, for a person who waits. Both in bytes (or items) of the same total.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void advance(std::string_view what, std::uint64_t done, std::uint64_t total) = 0;
};

}  // namespace reprise
