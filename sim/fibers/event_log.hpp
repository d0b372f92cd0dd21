#pragma once
// Computes a hash over all port calls of the ranks, in order.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/hash.hpp"
#include "reprise/types.hpp"

namespace reprise::sim {

/// One call of a port: its kind, the path or group that it concerns, its sizes and content hashes.
struct LoggedEvent {
  GlobalRank rank;
  std::string_view kind;
  std::string_view where;
  std::initializer_list<std::uint64_t> numbers;
};
/// Gets each call of a life, in order.
using LoggedEvents = std::function<void(const LoggedEvent& call)>;

class EventLog {
 public:
  /// `calls` may be null.
  explicit EventLog(std::int32_t world_size, LoggedEvents calls = {});

  void record(GlobalRank rank, std::string_view kind, std::string_view where,
              std::initializer_list<std::uint64_t> numbers);

  /// Returns the hash of this rank's events in the order in which they happened.
  std::uint64_t digest(GlobalRank rank) const;
  /// Returns the hash of all ranks' events in the order in which they happened.
  std::uint64_t digest() const { return all_.digest(); }
  std::uint64_t count() const { return count_; }

 private:
  LoggedEvents calls_;
  std::vector<Hasher> ranks_;
  Hasher all_;
  Bytes event_;  ///< bytes of the event being recorded
  std::uint64_t count_ = 0;
};

}  // namespace reprise::sim
