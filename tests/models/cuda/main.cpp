// Runs the tests under the schedule that the environment names: REPRISE_SCHEDULE=eager, latest or
// random, and for random REPRISE_SEED.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/models/cuda/cuda_model.hpp"

namespace reprise::models {
namespace {

std::string variable(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

/// Begins each test anew, and fails it if it did what programs must not do, or left anything.
class FreshModel : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& /*test*/) override {
    reset({.schedule = schedule_named(variable("REPRISE_SCHEDULE", "latest")),
           .seed = std::stoull(variable("REPRISE_SEED", "1"))});
  }
  void OnTestEnd(const testing::TestInfo& /*test*/) override {
    for (const auto& fault : faults()) ADD_FAILURE() << "the model of CUDA: " << fault;
    EXPECT_EQ(live_objects(), 0U) << "streams, events or memory are left";
  }
};

}  // namespace
}  // namespace reprise::models

int main(int count, char** words) {
  // Thousands of saves are made, and none has to survive a power cut.
  if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
  testing::InitGoogleTest(&count, words);
  testing::UnitTest::GetInstance()->listeners().Append(new reprise::models::FreshModel);  // NOLINT
  return RUN_ALL_TESTS();
}
