// All tests share one MPI session. The launch fails if a test fails on any rank, but only rank 0
// prints the results.
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
  // The tests of failures do not free their communicators. MPI_Finalize waits for these.
  if (session.abandoned()) MPI_Finalize();
  return failed;
}
