// All tests share one session. A failure on any rank fails the launch.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#include "tests/nccl/mpi_ranks.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  reprise::MpiSession session;
  reprise::contracts::launch_over(session);
  const int failed = RUN_ALL_TESTS();
  // Exits without running destructors, because threads of failed NCCL communicators may still be
  // running.
  std::fflush(nullptr);
  MPI_Finalize();
  std::_Exit(failed);
}
