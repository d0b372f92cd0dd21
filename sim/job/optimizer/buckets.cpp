#include "sim/job/optimizer/buckets.hpp"

#include <numeric>

namespace reprise::sim {
namespace {

std::int64_t up_to_multiple(std::int64_t value, std::int64_t of) {
  return (value + of - 1) / of * of;
}

}  // namespace

Interval Bucket::part(std::int32_t rank) const {
  const std::int64_t each = padded / ranks;
  return {rank * each, (rank + 1) * each};
}

std::vector<Bucket> bucket_layout(std::span<const std::int64_t> sizes, const BucketGroup& group,
                                  const BucketSizes& limits) {
  std::vector<Bucket> buckets;
  Bucket open;
  const auto close = [&] {
    if (open.entries.empty()) return;
    open.ranks = group.instance;
    open.padded =
        up_to_multiple(open.unpadded, std::lcm(limits.end_each, std::int64_t{group.instance}));
    buckets.push_back(std::move(open));
    open = {};
  };
  for (std::size_t p = sizes.size(); p-- > 0;) {
    if (sizes[p] == 0) continue;
    const std::int64_t begin = up_to_multiple(open.unpadded, limits.start);
    open.unpadded = begin + sizes[p];
    open.entries.push_back({p, {begin, open.unpadded}});
    if (open.unpadded >= limits.full) close();
  }
  close();
  return buckets;
}

}  // namespace reprise::sim
