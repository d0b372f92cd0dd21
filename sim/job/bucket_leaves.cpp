#include "sim/job/bucket_leaves.hpp"

#include <algorithm>
#include <utility>

#include "reprise/error.hpp"
#include "sim/job/optimizer/slots.hpp"

namespace reprise::sim {
namespace {

/// Returns the values of the field `number` of all buckets, as a list.
Value numbers_of(const std::vector<Bucket>& buckets, std::int64_t Bucket::*number) {
  List numbers;
  for (const auto& bucket : buckets) numbers.emplace_back(bucket.*number);
  return numbers;
}

bool names_bucket(const std::string& key, const std::string& prefix, std::size_t bucket) {
  return std::any_of(kSlots.begin(), kSlots.end(),
                     [&](Slot slot) { return key == bucket_key(prefix, bucket, slot); });
}

void append_padding(const Bucket& bucket, std::vector<Box>& padding) {
  std::int64_t end = 0;
  for (const auto& entry : bucket.entries) {
    if (entry.range.begin > end) padding.push_back({{end}, {entry.range.begin - end}});
    end = entry.range.end;
  }
}

/// Returns this rank's coordinate along dp_replicate, or along edp_replicate for experts. The
/// objects that describe the buckets have copies on all ranks along that axis.
std::int32_t bucket_copy(const Family& family) {
  return family.mesh->coordinate(
      family.member, family.kind == MeshKind::kDense ? "dp_replicate" : "edp_replicate");
}

}  // namespace

std::int32_t bucket_replica(const Family& family) {
  return bucket_copy(family) * family.sharing.size() + family.optimizer->own().value;
}

bool has_buckets(const RequestNames& asked) {
  return asked.metadata.optimizer_sharding == Sharding::kDpReshardable;
}

void add_buckets(StateDict& state, const Family& family, OptimizerShard& optimizer) {
  const std::string prefix = bucket_group_prefix(family.prefix, family.bucket_group);
  const std::int32_t copy = bucket_copy(family);
  std::int64_t arena = 0;
  const auto& buckets = optimizer.table().buckets;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const Interval part = buckets[b].part(optimizer.own().value);
    const Interval held{std::min(part.begin, buckets[b].unpadded),
                        std::min(part.end, buckets[b].unpadded)};
    for (const Slot slot : kSlots) {
      TensorLeaf leaf{.key = bucket_key(prefix, b, slot), .shape = {buckets[b].unpadded}};
      if (held.length() > 0) {
        leaf.pieces.push_back(contiguous_piece({{held.begin}, {held.length()}}));
      }
      leaf.data = optimizer.slot(slot).address_of(static_cast<std::size_t>(arena));
      leaf.replica = copy;
      state.tensors.push_back(std::move(leaf));
    }
    arena += part.length();
  }
  const std::int32_t replica = bucket_replica(family);
  const auto object = [&](std::string_view name, std::int64_t Bucket::*number) {
    state.objects.push_back(
        {prefix + std::string(name), {1}, {0}, replica, numbers_of(buckets, number)});
  };
  object("per_bucket_numel", &Bucket::padded);
  object(kUnpaddedSizes, &Bucket::unpadded);
}

void check_buckets(const ObjectLeaf& object, const Module& module, const Family& family) {
  const OptimizerShard& optimizer = family.foreign ? *family.foreign : *family.optimizer;
  const std::string key = module.asked.keys.before +
                          bucket_group_prefix(family.prefix, family.bucket_group) +
                          std::string(kUnpaddedSizes);
  if (!has_buckets(module.asked) || object.key != key) return;
  if (object.value == numbers_of(optimizer.table().buckets, &Bucket::unpadded)) return;
  throw Error(
      Code::kLayoutMismatch,
      "the checkpoint's buckets are not this job's: they hold other numbers of elements; "
      "dp_reshardable state loads only where the parameters of each model-parallel rank are "
      "the same",
      {.key = object.key});
}

std::vector<Box> padding_of(const JobData& job, const std::string& key) {
  std::vector<Box> padding;
  for (const auto& module : job.modules) {
    for (const auto& family : module.families) {
      const std::string prefix = keys_of(job.config.checkpoint.keys, module.config.name).before +
                                 bucket_group_prefix(family.prefix, family.bucket_group);
      const auto& buckets = family.optimizer->table().buckets;
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        if (names_bucket(key, prefix, b)) append_padding(buckets[b], padding);
      }
    }
  }
  return padding;
}

}  // namespace reprise::sim
