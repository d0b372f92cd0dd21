#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/diff/diff_seamed.hpp"
#include "core/diff/rank_pairs.hpp"
#include "core/reshard/reshard_seamed.hpp"
#include "core/state/catalog.hpp"
#include "properties/finding_code.hpp"
#include "sim/mutants/asked.hpp"
#include "sim/mutants/registration.hpp"

namespace reprise::sim {
namespace {

// --- reshard ------------------------------------------------------------------------------------

/// Leaves out the last part if it is shorter than the others.
std::vector<Box> full_parts(const Dims& shape, const Cut& cut) {
  std::vector<Box> parts = ceil_parts(shape, cut);
  if (parts.back().extent != parts.front().extent) parts.pop_back();
  return parts;
}

/// Mutants that change what is read would otherwise end at the engine's own proof that each chunk
/// was read as a whole, which is made with checksums.
bool never_compared(const ReshardOptions& /*options*/) { return false; }

const Registration kReshardLastPartDropped({
    "reshard-last-part-dropped",
    "A reshard cuts a tensor into parts of equal length and drops the remainder.",
    "ReshardSeams::divide, ReshardSeams::compares_checksums",
    "a dimension that is not a multiple of the number of parts",
    {Code::kCoverageGap, judged::kVerdictDisagreement},
    [](Policies& policies) {
      policies.reshard.divide = asked<full_parts>;
      policies.reshard.compares_checksums = asked<never_compared>;
    },
});

/// Reads a part's elements from the begin of the tensor, whatever the part's offset.
std::vector<Piece> from_the_begin(const Box& part, std::int64_t begin, std::int64_t end) {
  return pieces_of_range({Dims::filled(part.offset.size(), 0), part.extent}, begin, end);
}

const Registration kReshardPartReadFromBegin({
    "reshard-part-read-from-begin",
    "A reshard ignores the offset of each part, so every part holds the first elements of the "
    "tensor.",
    "ReshardSeams::read_from, ReshardSeams::compares_checksums",
    "a tensor in 2 parts",
    {judged::kBitMismatch, judged::kShiftedBytes, judged::kVerdictDisagreement},
    [](Policies& policies) {
      policies.reshard.read_from = asked<from_the_begin>;
      policies.reshard.compares_checksums = asked<never_compared>;
    },
});

std::optional<PerRank> first_for_all(const RankChoice& /*choice*/, std::int64_t /*before*/) {
  return PerRank::kFirst;
}

const Registration kReshardFirstRankForAll({
    "reshard-first-rank-for-all",
    "When each rank had its own metadata, a reshard writes one metadata for all ranks, with the "
    "first rank's values.",
    "ReshardSeams::per_rank",
    "2 ranks that saved without collectives and have different values",
    {judged::kRngStreamCollapse, judged::kVerdictDisagreement},
    [](Policies& policies) { policies.reshard.per_rank = asked<first_for_all>; },
});

/// Leaves out all shards of an object but the first.
Metadata first_shards(Metadata source) {
  std::erase_if(source.catalog.objects, [](const StoredObject& object) {
    const auto key = parse_object_key(object.key);
    return key && key->coordinate != Dims::filled(key->coordinate.size(), 0);
  });
  return source;
}

const Registration kReshardObjectShardsLost({
    "reshard-object-shards-lost",
    "A reshard copies only one shard of each object.",
    "ReshardSeams::carried",
    "random states of 2 ranks",
    {Code::kTrackerDangling, judged::kVerdictDisagreement},
    [](Policies& policies) { policies.reshard.carried = asked<first_shards>; },
});

const Registration kReshardDamageCopied({
    "reshard-damage-copied",
    "A reshard does not verify checksums while it reads, so it writes damaged data with fresh, "
    "correct checksums.",
    "ReshardSeams::compares_checksums",
    "a payload file with a flipped bit",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.reshard.compares_checksums = asked<never_compared>; },
});

// --- diff ---------------------------------------------------------------------------------------

template <class Item>
std::vector<Both<Item>> on_both_sides(std::vector<Both<Item>> pairs) {
  std::erase_if(pairs, [](const auto& pair) { return !pair.left || !pair.right; });
  return pairs;
}

std::vector<Both<StoredTensor>> tensors_on_both_sides(const std::vector<StoredTensor>& left,
                                                      const std::vector<StoredTensor>& right) {
  return on_both_sides(pair_tensors(left, right));
}

std::vector<Both<StoredObject>> objects_on_both_sides(const std::vector<StoredObject>& left,
                                                      const std::vector<StoredObject>& right) {
  return on_both_sides(pair_objects(left, right));
}

const Registration kDiffOneSidedPassedOver({
    "diff-one-sided-passed-over",
    "A diff skips the keys that only one of the checkpoints has.",
    "DiffSeams::tensors, DiffSeams::objects",
    "a key that one checkpoint lacks",
    {judged::kVerdictDisagreement},
    [](Policies& policies) {
      policies.diff.tensors = asked<tensors_on_both_sides>;
      policies.diff.objects = asked<objects_on_both_sides>;
    },
});

/// Compares the elements whatever the shapes, as long as the number of dimensions is the same.
DiffVerdict form_of_any_shape(const StoredTensor& left, const StoredTensor& right,
                              const DiffOptions& options) {
  const DiffVerdict right_one = judge_form(left, right, options);
  const bool alike = logical_shape(left).size() == logical_shape(right).size();
  return right_one == DiffVerdict::kShape && alike ? DiffVerdict::kSame : right_one;
}

std::vector<Box> overlap(const StoredTensor& left, const StoredTensor& right) {
  const auto both = intersect(Box::whole(logical_shape(left)), Box::whole(logical_shape(right)));
  return both ? std::vector<Box>{*both} : std::vector<Box>{};
}

const Registration kDiffOverlapAlone({
    "diff-overlap-alone",
    "When a tensor has different shapes in the two checkpoints, a diff compares only the part "
    "that they have in common and does not report the shapes.",
    "DiffSeams::form, DiffSeams::compared",
    "a tensor that has more rows in one checkpoint",
    {judged::kVerdictDisagreement},
    [](Policies& policies) {
      policies.diff.form = asked<form_of_any_shape>;
      policies.diff.compared = asked<overlap>;
    },
});

std::vector<Box> first_chunk(const StoredTensor& left, const StoredTensor& right) {
  std::vector<Box> boxes;
  for (const StoredChunk& chunk : left.chunks) {
    for (const auto& piece : pieces_of(left, chunk)) boxes.push_back(piece.box);
  }
  if (boxes.empty()) return all_elements(left, right);
  return {*std::min_element(boxes.begin(), boxes.end())};
}

const Registration kDiffFirstChunkAlone({
    "diff-first-chunk-alone",
    "A diff compares only the first chunk of each tensor.",
    "DiffSeams::compared",
    "a tensor in 2 chunks that differs in the second",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.diff.compared = asked<first_chunk>; },
});

/// Finds only what one side lacks.
std::vector<ValueDifference> structure_alone(
    const Value& left, const Value& right, std::size_t most,
    const std::function<bool(const ValueDifference&)>& wanted) {
  return differences(left, right, most, [&wanted](const ValueDifference& difference) {
    return difference.one_sided && (!wanted || wanted(difference));
  });
}

const Registration kDiffStructureAlone({
    "diff-structure-alone",
    "A diff compares the structure of two objects but not their values.",
    "DiffSeams::values",
    "objects that differ in a value",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.diff.values = asked<structure_alone>; },
});

DiffVerdict same_if_unread(UnreadItems& /*unread*/, const Error& /*error*/) {
  return DiffVerdict::kSame;
}

const Registration kDiffUnreadIsSame({
    "diff-unread-is-same",
    "A diff counts an item that it cannot read as equal.",
    "DiffSeams::unread",
    "a payload file that is gone",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.diff.unread = asked<same_if_unread>; },
});

bool never_damage(const Finding& /*finding*/) { return false; }

const Registration kDiffDamageNotTold({
    "diff-damage-not-told",
    "A diff sees a wrong checksum on both sides and still reports the two as the same, because "
    "their bytes are equal.",
    "DiffSeams::is_damage",
    "a checkpoint and a copy of it with the same damage",
    {judged::kVerdictDisagreement},
    [](Policies& policies) { policies.diff.is_damage = asked<never_damage>; },
});

}  // namespace
}  // namespace reprise::sim
