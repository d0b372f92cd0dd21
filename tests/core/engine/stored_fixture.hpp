#pragma once
// Checkpoints of the test data, opened in place or copied so that a test may damage them.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/engine/checkpoint.hpp"
#include "core/engine/diff.hpp"
#include "core/ports/no_progress.hpp"
#include "reprise/ports.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::test {

/// Returns the test data as a store.
inline PosixStore& data_store() {
  static PosixStore store(REPRISE_TEST_DATA);
  return store;
}

/// Copies a fixture, as "ckpt", to a temporary directory.
class FixtureCopy {
 public:
  explicit FixtureCopy(const std::string& fixture) : store(directory_.path()) {
    std::filesystem::copy(std::filesystem::path(REPRISE_TEST_DATA) / fixture, path("ckpt"),
                          std::filesystem::copy_options::recursive);
  }

  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path()) / name;
  }

 private:
  contracts::TemporaryDirectory directory_;

 public:
  PosixStore store;
};

/// A store in a temporary directory, and the other inputs of operations on checkpoints.
class StoreTest : public ::testing::Test {
 protected:
  contracts::TemporaryDirectory directory_;
  PosixStore store_{directory_.path()};
  HostDevice device_{"test", 0};
  ThreadTasks tasks_{1};
  NoTrace trace_;
  NoProgress progress_;
};

inline DiffReport diff_of(Store& left_store, const std::string& left, Store& right_store,
                          const std::string& right, const DiffOptions& options = {}) {
  Checkpoint a = Checkpoint::open(left_store, left);
  Checkpoint b = Checkpoint::open(right_store, right);
  HostDevice device("test", 0);
  NoProgress progress;
  return diff(a, b, device, options, progress);
}

}  // namespace reprise::test
