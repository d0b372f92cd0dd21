#include "core/adapters/nccl/nccl_links.hpp"

#include "core/adapters/nccl/aside.hpp"

namespace reprise {

void NcclLinks::require_whole() const {
  if (broken_) throw Error(*broken_);
}

// In one group call, ncclCommAbort signals the kernels of every link before anything is freed. The
// free waits for the device and may wait for ranks of the same node, which may never arrive. So
// this runs in a thread of its own, and nothing waits for that thread.
//
// A member that has only waited for too long has nothing to tell: the others wait as long, and what
// they say then names the call.
const Error& NcclLinks::fail(const Error& why) {
  if (broken_) return *broken_;
  broken_ = why;
  std::vector<ncclComm_t> comms;
  for (const auto& link : links_) {
    if (why.code() != Code::kDeadline) link->warn();
    if (const ncclComm_t comm = link->abandon()) comms.push_back(comm);
  }
  if (comms.empty()) return *broken_;
  run_aside([comms = std::move(comms)] {
    ncclGroupStart();
    for (const ncclComm_t comm : comms) ncclCommAbort(comm);
    ncclGroupEnd();
  });
  return *broken_;
}

}  // namespace reprise
