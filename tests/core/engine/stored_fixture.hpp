#pragma once
// Checkpoints of the test data, opened in place or copied to where a test may damage them.

#include <filesystem>
#include <string>

#include "core/adapters/posix/posix_store.hpp"
#include "core/engine/checkpoint.hpp"
#include "core/ports/trace.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::test {

class NoProgress final : public Progress {
 public:
  void advance(std::string_view, std::uint64_t, std::uint64_t) override {}
};

class NoTrace final : public Trace {
 public:
  void event(const TraceEvent&) override {}
};

/// The test data as a store.
inline PosixStore& data_store() {
  static PosixStore store(REPRISE_TEST_DATA);
  return store;
}

/// A copy of a fixture, named "ckpt", in a directory of its own.
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

}  // namespace reprise::test
