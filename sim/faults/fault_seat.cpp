#include "sim/faults/fault_seat.hpp"

#include "core/base/check.hpp"

namespace reprise::sim {

void FaultSeat::die() {
  book_.bury(rank_);
  powers_.die();
  CHECK(false, "a rank outlived its end", rank_);
  std::abort();
}

namespace {

using OtherWriter = std::function<void(const std::string&)>;

void act_as_other(const OtherWriter& writer, const std::string& path) {
  if (!writer) {
    throw Error(Code::kUsage, "this store has no leases: it needs store: {renames: false}",
                {.file = path});
  }
  writer(path);
}

}  // namespace

void FaultSeat::take_lease(const std::string& path) { act_as_other(powers_.take_lease, path); }

void FaultSeat::let_other_write(const std::string& path) {
  act_as_other(powers_.let_other_write, path);
}

void FaultSeat::fail(Code code, const PortCall& call) const {
  throw Error(code, "injected: the " + std::string(call.what) + " failed",
              {.rank = rank_, .file = std::string(call.path)});
}

void FaultSeat::act(const FaultSpec* fault) {
  if (fault == nullptr) return;
  if (fault->kind != FaultKind::kCrash) sleep(fault->delay_ns);
  if (ends_life(fault->kind)) die();
}

}  // namespace reprise::sim
