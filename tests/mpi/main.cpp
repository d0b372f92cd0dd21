// All tests share one session. A failure on any rank fails the launch, but only rank 0 prints.
#include <gtest/gtest.h>
#include <mpi.h>

#include "tests/mpi/session.hpp"

namespace reprise::contracts {

MpiSession*& shared_session() {
  static MpiSession* session = nullptr;
  return session;
}

}  // namespace reprise::contracts

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  reprise::MpiSession session;
  reprise::contracts::shared_session() = &session;
  const int failed = RUN_ALL_TESTS();
  // Tests of failures leave communicators behind, and MPI waits for these while it finalizes.
  if (session.abandoned()) MPI_Finalize();
  return failed;
}
