#include "core/save/staging.hpp"

#include <algorithm>

#include "core/seams/load_seams.hpp"

namespace reprise {

std::uint64_t one_read(const StagingNeed& need) {
  const std::uint64_t share = std::max(need.most / need.reads, std::min(need.most, kShareMin));
  return std::min(need.largest, share);
}

std::uint64_t read_ring(const StagingNeed& need) {
  const std::uint64_t room = one_read(need);
  return std::max(room, std::min({need.most, need.reads * room, need.all / 2}));
}

}  // namespace reprise
