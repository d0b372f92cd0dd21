#include "core/save/staging.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/seams/load_seams.hpp"

namespace reprise {

std::uint64_t one_read(const StagingNeed& need) { return std::min(need.largest, need.most); }

MutableByteSpan StagingRing::next(std::uint64_t bytes) {
  CHECK(room_ <= staging_.size(), room_, staging_.size());
  if (staging_.size() - begin_ < room_) begin_ = 0;
  const MutableByteSpan part = staging_.subspan(begin_, room_);
  begin_ += std::min(bytes, room_);
  return part;
}

}  // namespace reprise
