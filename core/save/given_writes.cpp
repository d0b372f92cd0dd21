#include "core/save/given_writes.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "core/agree/peer_wire.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

constexpr std::string_view kWire = "a list of writes";

[[noreturn]] void refuse_absent(const std::string& key, const std::string& what) {
  throw Error(Code::kNoWriter, "this rank was told to write " + what + " but does not hold it",
              {.key = key});
}

void put_dims(Bytes& wire, const Dims& dims) {
  for (const std::int64_t value : dims) append_le(wire, value);
}

Dims take_dims(PeerWire& wire, std::uint64_t ndim) {
  if (ndim > kMaxNdim) wire.refuse("has a box of too many dimensions");
  Dims dims;
  for (; ndim > 0; --ndim) dims.push_back(wire.number<std::int64_t>());
  return dims;
}

[[noreturn]] void refuse_twice(const std::string& key, GroupRank one, GroupRank other,
                               const Group& savers) {
  throw Error(Code::kMultiWriter,
              "ranks " + std::to_string(savers.member(one).value) + " and " +
                  std::to_string(savers.member(other).value) +
                  " were both told to write the same part",
              {.key = key});
}

}  // namespace

Bytes encode_writes(std::span<const WriteItem> writes, const StateDict& state) {
  std::map<std::string, const TensorLeaf*> tensors;
  for (const TensorLeaf& leaf : state.tensors) tensors.emplace(leaf.key, &leaf);
  const auto objects = objects_by_key(state);
  Bytes wire;
  for (const WriteItem& item : writes) {
    put_text(wire, item.key);
    const auto tensor = tensors.find(item.key);
    if (tensor == tensors.end()) {
      if (!objects.contains(item.key)) refuse_absent(item.key, "this key");
      append_le(wire, std::uint8_t{0});
      continue;
    }
    const auto& pieces = tensor->second->pieces;
    const auto piece = std::find_if(pieces.begin(), pieces.end(), [&item](const Piece& one) {
      return one.box.offset == item.offset && !one.box.empty();
    });
    if (piece == pieces.end()) refuse_absent(item.key, "a box at " + to_string(item.offset));
    append_le(wire, std::uint8_t{1});
    append_le(wire, static_cast<std::uint64_t>(piece->box.ndim()));
    put_dims(wire, piece->box.offset);
    put_dims(wire, piece->box.extent);
  }
  return wire;
}

GlobalPlan owners_by_writes(std::span<const Bytes> shares, const Group& savers) {
  std::map<std::string, std::map<Box, GroupRank>> tensors;
  std::map<std::string, GroupRank> objects;
  for (std::size_t r = 0; r < shares.size(); ++r) {
    const GroupRank rank{static_cast<std::int32_t>(r)};
    PeerWire wire(shares[r], kWire);
    while (!wire.empty()) {
      const std::string key = wire.text();
      if (wire.number<std::uint8_t>() == 0) {
        const auto [at, fresh] = objects.try_emplace(key, rank);
        if (!fresh) refuse_twice(key, at->second, rank, savers);
        continue;
      }
      const auto ndim = wire.number<std::uint64_t>();
      Dims offset = take_dims(wire, ndim);
      const Box box{offset, take_dims(wire, ndim)};
      const auto [at, fresh] = tensors[key].try_emplace(box, rank);
      if (!fresh) refuse_twice(key, at->second, rank, savers);
    }
  }
  GlobalPlan owners;
  for (const auto& [key, boxes] : tensors) {
    PlannedTensor& tensor = owners.tensors.emplace_back();
    tensor.key = key;
    auto sorted = std::make_shared<std::vector<Box>>();
    for (const auto& [box, owner] : boxes) {
      sorted->push_back(box);
      tensor.owners.push_back(owner);
    }
    tensor.boxes = std::move(sorted);
  }
  for (const auto& [key, owner] : objects) owners.objects.push_back({key, owner});
  return owners;
}

void take_object_owners(const GlobalPlan& owners, GlobalPlan& plan) {
  auto known = owners.objects.begin();
  for (PlannedObject& object : plan.objects) {
    while (known != owners.objects.end() && known->key < object.key) ++known;
    if (known == owners.objects.end() || known->key != object.key) {
      throw Error(Code::kNoWriter, "no rank was told to write this object", {.key = object.key});
    }
    object.owner = known->owner;
  }
}

}  // namespace reprise
