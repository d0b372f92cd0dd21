// All tests share one session. A failure on any rank fails the launch.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/adapters/nccl/own_host.hpp"
#include "tests/nccl/launch.hpp"

namespace reprise::contracts {
namespace {

/// If there are more ranks than devices, ranks share devices. Each rank then pretends to run on its
/// own host.
Launch launch_of(MpiSession& session) {
  const auto devices = static_cast<int>(cuda_devices().size());
  int of_all = 0;
  MPI_Allreduce(&devices, &of_all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (of_all < session.world_size()) pose_as_own_host(session.rank());
  return {.session = &session,
          .device = of_all == 0 ? 0 : session.rank().value % of_all,
          .why_not = of_all == 0 ? "no CUDA device on some rank" : ""};
}

}  // namespace

Launch& shared_launch() {
  static Launch launch;
  return launch;
}

}  // namespace reprise::contracts

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  reprise::MpiSession session;
  reprise::contracts::shared_launch() = reprise::contracts::launch_of(session);
  const int failed = RUN_ALL_TESTS();
  // Exits without running destructors, because threads of failed NCCL communicators may still be
  // running.
  std::fflush(nullptr);
  MPI_Finalize();
  std::_Exit(failed);
}
