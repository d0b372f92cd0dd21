#include "core/save/unequal_copies.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "core/agree/agreement.hpp"
#include "core/agree/peer_wire.hpp"
#include "core/base/hash.hpp"
#include "core/base/print.hpp"

namespace reprise {
namespace {

/// Calls `visit` with the position in the plan and a hash of the value of each object of this rank
/// of which others hold copies, in the order of the plan.
template <class Visit>
void each_copy(const GlobalPlan& plan, const StateDict& state, const Visit& visit) {
  if (std::none_of(plan.objects.begin(), plan.objects.end(),
                   [](const PlannedObject& object) { return object.copies > 1; })) {
    return;
  }
  const auto own = objects_by_key(state);
  for (std::size_t i = 0; i < plan.objects.size(); ++i) {
    if (plan.objects[i].copies < 2) continue;
    const auto leaf = own.find(plan.objects[i].key);
    if (leaf != own.end()) visit(i, hash_of(leaf->second->value));
  }
}

}  // namespace

std::uint64_t part_of_copies(const GlobalPlan& plan, GroupRank self, const StateDict& state) {
  std::uint64_t sum = 0;
  each_copy(plan, state, [&](std::size_t i, std::uint64_t hash) {
    const PlannedObject& object = plan.objects[i];
    const std::uint64_t weight = mix64(hash_of(std::string_view(object.key))) | 1U;
    const auto others = static_cast<std::uint64_t>(object.copies - 1);
    sum += weight * (object.owner == self ? 0 - others * hash : hash);
  });
  return sum;
}

std::vector<UnequalCopy> unequal_copies(Communicator& group, const GlobalPlan& plan,
                                        const StateDict& state) {
  const auto all = agree_on(group, [&] {
    Bytes wire;
    each_copy(plan, state, [&](std::size_t i, std::uint64_t hash) {
      append_le(wire, static_cast<std::uint64_t>(i));
      append_le(wire, hash);
    });
    return wire;
  });
  std::vector<std::map<std::uint64_t, std::uint64_t>> hashes;  // by rank, then by object
  for (const Bytes& bytes : all) {
    PeerWire wire(bytes, "a list of copies");
    auto& own = hashes.emplace_back();
    while (!wire.empty()) {
      const auto object = wire.number<std::uint64_t>();
      if (object >= plan.objects.size()) wire.refuse("names an object that is not planned");
      own[object] = wire.number<std::uint64_t>();
    }
  }
  std::vector<UnequalCopy> found;
  for (std::size_t i = 0; i < plan.objects.size(); ++i) {
    const PlannedObject& object = plan.objects[i];
    const auto& of_owner = hashes.at(static_cast<std::size_t>(object.owner.value));
    const auto written = of_owner.find(i);
    if (written == of_owner.end()) continue;
    UnequalCopy copy{object.key, group.group().member(object.owner).value, {}};
    for (std::size_t r = 0; r < hashes.size(); ++r) {
      const auto held = hashes[r].find(i);
      if (held == hashes[r].end() || held->second == written->second) continue;
      copy.holders.push_back(group.group().member({static_cast<std::int32_t>(r)}).value);
    }
    std::sort(copy.holders.begin(), copy.holders.end());
    if (!copy.holders.empty()) found.push_back(std::move(copy));
  }
  return found;
}

std::string line_of(const UnequalCopy& copy) {
  return "key " + copy.key + ": the copy of rank " + std::to_string(copy.writer) +
         " is saved, but " + (copy.holders.size() == 1 ? "rank " : "ranks ") +
         join(copy.holders, " ") + (copy.holders.size() == 1 ? " holds" : " hold") +
         " something else; if each rank has its own value, give each its own key";
}

}  // namespace reprise
