#include "core/save/unequal_copies.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/agree/agreement.hpp"
#include "core/agree/peer_wire.hpp"
#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "core/ports/interruption.hpp"
#include "core/save/leaf_source.hpp"

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

/// A box, by the positions of its tensor in the plan and of itself in the tensor.
using PlannedBox = std::pair<std::uint32_t, std::uint32_t>;

/// Returns a hash of the elements of each box of this rank that is in the plan.
std::map<PlannedBox, std::uint64_t> hashes_of_boxes(const Ports& ports, const GlobalPlan& plan,
                                                    const StateDict& state) {
  std::map<PlannedBox, std::uint64_t> hashes;
  constexpr std::size_t kStep = std::size_t{1} << 20U;
  const StagingMemory staging = ports.device.staging(kStep);
  for (const TensorLeaf& leaf : state.tensors) {
    const auto tensor = std::lower_bound(
        plan.tensors.begin(), plan.tensors.end(), leaf.key,
        [](const PlannedTensor& one, const std::string& key) { return one.key < key; });
    if (tensor == plan.tensors.end() || tensor->key != leaf.key) continue;
    const std::size_t width = size_of(leaf.dtype);
    const auto elements_at_once = static_cast<std::int64_t>(kStep / width);
    for (const Piece& piece : leaf.pieces) {
      const auto box = std::lower_bound(tensor->boxes->begin(), tensor->boxes->end(), piece.box);
      if (box == tensor->boxes->end() || !(*box == piece.box)) continue;
      const auto source = leaf_source(ports.device, {{&leaf, &piece}});
      std::uint64_t hash = 0;
      const std::int64_t end = piece.box.elements();
      for (std::int64_t begin = 0; begin < end; begin += elements_at_once) {
        require_uninterrupted(ports);
        const std::int64_t last = std::min(begin + elements_at_once, end);
        const MutableByteSpan part(staging.get(), static_cast<std::size_t>(last - begin) * width);
        source->fill(0, begin, last, part);
        source->drain();
        hash = mix64(hash, hash_of(ByteSpan(part)));
      }
      hashes[{static_cast<std::uint32_t>(tensor - plan.tensors.begin()),
              static_cast<std::uint32_t>(box - tensor->boxes->begin())}] = hash;
    }
  }
  return hashes;
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
    UnequalCopy copy{object.key, {}, group.group().member(object.owner).value, {}};
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

std::vector<UnequalCopy> unequal_tensors(const Ports& ports, Communicator& group,
                                         const GlobalPlan& plan, const StateDict& state) {
  const auto all = agree_on(group, [&] {
    Bytes wire;
    for (const auto& [box, hash] : hashes_of_boxes(ports, plan, state)) {
      append_le(wire, box.first);
      append_le(wire, box.second);
      append_le(wire, hash);
    }
    return wire;
  });
  // First what the owner of each box has, then who has something else.
  std::vector<std::vector<std::uint64_t>> written(plan.tensors.size());
  std::map<PlannedBox, std::vector<std::int32_t>> others;
  const auto each = [&](const auto& visit) {
    for (std::size_t r = 0; r < all.size(); ++r) {
      const GroupRank rank{static_cast<std::int32_t>(r)};
      PeerWire wire(all[r], "a list of boxes");
      while (!wire.empty()) {
        const PlannedBox box{wire.number<std::uint32_t>(), wire.number<std::uint32_t>()};
        if (box.first >= plan.tensors.size() ||
            box.second >= plan.tensors[box.first].boxes->size()) {
          wire.refuse("names a box that is not planned");
        }
        const auto hash = wire.number<std::uint64_t>();
        visit(box, hash, rank, plan.tensors[box.first].owners[box.second] == rank);
      }
    }
  };
  each([&](PlannedBox box, std::uint64_t hash, GroupRank, bool owned) {
    if (!owned) return;
    auto& of_tensor = written[box.first];
    of_tensor.resize(plan.tensors[box.first].boxes->size());
    of_tensor[box.second] = hash;
  });
  each([&](PlannedBox box, std::uint64_t hash, GroupRank rank, bool owned) {
    const auto& of_tensor = written[box.first];
    if (owned || of_tensor.empty() || of_tensor[box.second] == hash) return;
    others[box].push_back(group.group().member(rank).value);
  });
  std::vector<UnequalCopy> found;
  for (auto& [box, holders] : others) {
    const PlannedTensor& tensor = plan.tensors[box.first];
    std::sort(holders.begin(), holders.end());
    found.push_back({tensor.key, (*tensor.boxes)[box.second].offset,
                     group.group().member(tensor.owners[box.second]).value, std::move(holders)});
  }
  return found;
}

std::string line_of(const UnequalCopy& copy) {
  return "key " + copy.key + (copy.offset.empty() ? "" : " at " + to_string(copy.offset)) +
         ": the copy of rank " + std::to_string(copy.writer) + " is saved, but " +
         (copy.holders.size() == 1 ? "rank " : "ranks ") + join(copy.holders, " ") +
         (copy.holders.size() == 1 ? " holds" : " hold") +
         " something else; if each rank has its own value, give each its own key";
}

}  // namespace reprise
