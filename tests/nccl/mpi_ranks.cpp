#include "tests/nccl/mpi_ranks.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <string>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/adapters/mpi/mpi_fabric.hpp"
#include "core/adapters/nccl/own_host.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "tests/nccl/launch.hpp"

namespace reprise::contracts {
namespace {

struct Launch {
  MpiSession* session = nullptr;
  int device = 0;
  std::string why_not;  ///< why NCCL can't run, the same text on all ranks; empty if it can
};
Launch launch;  // NOLINT: one per process

class MpiRank final : public NcclRank {
 public:
  std::unique_ptr<Fabric> bootstrap(std::uint64_t deadline_ns) override {
    return std::make_unique<MpiFabric>(*launch.session, clock_,
                                       MpiLimits{.deadline_ns = deadline_ns});
  }
  Clock& clock() override { return clock_; }
  int device() const override { return launch.device; }

 private:
  PosixClock clock_;
};

}  // namespace

void launch_over(MpiSession& session) {
  const auto devices = static_cast<int>(cuda_devices().size());
  int of_all = 0;
  MPI_Allreduce(&devices, &of_all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  launch.session = &session;
  launch.why_not = of_all == 0 ? "no CUDA device on some rank" : "";
  const NodePlace place = session.node_place();
  if (of_all == 0) return;
  launch.device = place.rank % devices;
  MpiRank rank;
  present_device_to_nccl(*rank.bootstrap(kDefaultDeadlineNs), session.node(), launch.device);
}

void on_ranks(const std::function<void(NcclRank&)>& body) {
  if (!launch.why_not.empty()) GTEST_SKIP() << launch.why_not;
  MpiRank rank;
  body(rank);
}

}  // namespace reprise::contracts
