// Runs the tests under the schedule that the environment names: REPRISE_SCHEDULE=eager, latest or
// random, and for random REPRISE_SEED.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

/// A link that failed frees nothing (core/adapters/nccl/nccl_link.hpp).
extern "C" const char* __lsan_default_suppressions();   // NOLINT: LeakSanitizer's name
extern "C" const char* __lsan_default_suppressions() {  // NOLINT
  return "leak:reprise::NcclLink::NcclLink\n";
}

int main(int count, char** words) {
  // Thousands of saves are made, and none has to survive a power cut.
  if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
