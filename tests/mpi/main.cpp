// All tests share one session; a failure on any rank fails the launch. Only rank 0 is verbose.
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
  // Tests of failures leave communicators behind; MPI waits for them while it finalizes.
  if (session.abandoned()) MPI_Finalize();
  return failed;
}
