#pragma once
// Creates a directory that is removed when the object is destroyed.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/base/check.hpp"

namespace reprise::contracts {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    path_ = (std::filesystem::temp_directory_path() / "reprise-test-XXXXXX").string();
    CHECK(::mkdtemp(path_.data()) != nullptr, path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace reprise::contracts
