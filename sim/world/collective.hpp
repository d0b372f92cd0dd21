#pragma once
// Defines the state of a group's collective calls: for each call, the members that have arrived and
// their bytes.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/error.hpp"
#include "reprise/mesh.hpp"
#include "sim/fibers/scheduler.hpp"

namespace reprise::sim {

/// Parameters of a call, which must be the same on all members.
struct CollectiveCall {
  std::string_view operation;
  std::uint64_t root = 0;       ///< only for broadcast
  std::uint64_t reduction = 0;  ///< only for all_reduce
  std::uint64_t length = 0;     ///< of all_reduce, or a share of all_gather_on_device

  friend bool operator==(const CollectiveCall&, const CollectiveCall&) = default;
};

/// Returns text for messages, such as "all_reduce(how 1, length 3)".
std::string to_string(const CollectiveCall& call);

/// The n-th call of a group. Each member contributes its bytes; when all have arrived, each
/// receives the bytes of all members.
struct Rendezvous {
  CollectiveCall call;
  GlobalRank first;  ///< first member to arrive; the others must make the same call
  std::vector<std::optional<Bytes>> parts;
  std::int32_t arrived = 0;
  std::int32_t left = 0;
};

/// The calls of a group, in order. After an error every call fails with that error.
struct Channel {
  Channel(Group members, std::uint64_t channel_number);

  bool complete(std::uint64_t sequence) const;
  /// Returns the members that have not arrived at the call with this number.
  std::vector<GlobalRank> missing(std::uint64_t sequence) const;

  Group group;
  std::uint64_t number;             ///< position among all channels of the network
  std::string name;                 ///< the group as text
  std::vector<std::uint64_t> next;  ///< for each member: number of its next call
  std::map<std::uint64_t, Rendezvous> rounds;
  std::optional<Error> broken;
  std::set<GroupRank> warners;  ///< members that called warn()
  WaitQueue waiting;
};

}  // namespace reprise::sim
