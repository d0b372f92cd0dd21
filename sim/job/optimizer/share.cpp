#include "sim/job/optimizer/share.hpp"

#include <algorithm>

namespace reprise::sim {
namespace {

std::vector<Box> range_of(const LocalTensor& tensor, Interval range) {
  if (range.length() == 0) return {};
  return boxes_of_range(tensor.whole(), range.begin, range.end);
}

/// Divides each tensor separately among the ranks. A rank's arena holds the rank's parts in
/// parameter order.
template <class Cut>
ShareTable share_each(std::span<const LocalTensor> tensors, std::int32_t ranks, const Cut& cut) {
  ShareTable table;
  table.arena.resize(static_cast<std::size_t>(ranks));
  for (const LocalTensor& tensor : tensors) {
    auto& shares = table.shares.emplace_back();
    for (std::int32_t r = 0; r < ranks; ++r) {
      std::int64_t& end = table.arena[static_cast<std::size_t>(r)];
      shares.push_back({cut(tensor, GroupRank{r}), end});
      end += elements_of(shares.back().boxes);
    }
  }
  return table;
}

ShareTable share_buckets(std::span<const LocalTensor> tensors, std::int32_t ranks,
                         std::int32_t instances, const ShareRule& rule) {
  std::vector<std::int64_t> sizes;
  for (const LocalTensor& tensor : tensors) sizes.push_back(volume(tensor.shape));
  ShareTable table;
  table.buckets = rule.layout(sizes, {ranks, ranks * instances}, rule.buckets);
  table.arena.resize(static_cast<std::size_t>(ranks));
  table.shares.assign(tensors.size(), std::vector<Share>(static_cast<std::size_t>(ranks)));
  for (const Bucket& bucket : table.buckets) {
    for (std::int32_t r = 0; r < ranks; ++r) {
      const auto rank = static_cast<std::size_t>(r);
      const Interval part = bucket.part(r);
      for (const BucketEntry& entry : bucket.entries) {
        const Interval held{std::max(part.begin, entry.range.begin),
                            std::min(part.end, entry.range.end)};
        if (held.length() == 0) continue;
        const std::int64_t start = entry.range.begin;
        table.shares[entry.parameter][rank] = {
            range_of(tensors[entry.parameter], {held.begin - start, held.end - start}),
            table.arena[rank] + held.begin - part.begin};
      }
      table.arena[rank] += part.length();
    }
  }
  return table;
}

}  // namespace

std::vector<Split> share_splits(const Dims& shape, std::size_t dim, const Mesh& group) {
  std::vector<Split> splits;
  if (shape.empty()) return splits;
  for (std::size_t a = group.axes().size(); a-- > 0;) {
    splits.push_back({group.axes()[a].name, std::min(dim, shape.size() - 1)});
  }
  return splits;
}

ShareTable share_out(std::span<const LocalTensor> tensors, const Mesh& group,
                     std::int32_t instances, const ShareRule& rule) {
  switch (rule.sharding) {
    case Sharding::kDpReshardable:
      return share_buckets(tensors, group.size(), instances, rule);
    case Sharding::kFullyShardedModelSpace:
      return share_each(tensors, group.size(), [&](const LocalTensor& tensor, GroupRank rank) {
        return range_of(tensor, rule.slice(volume(tensor.shape), group.size(), rank.value));
      });
    case Sharding::kFullyReshardable:
    case Sharding::kFsdpDtensor:
      break;
  }
  return share_each(tensors, group.size(), [&](const LocalTensor& tensor, GroupRank rank) {
    const Placement cut(share_splits(tensor.shape, rule.dim, group));
    return std::vector<Box>{cut.box(tensor.shape, group, rank, rule.slice)};
  });
}

}  // namespace reprise::sim
