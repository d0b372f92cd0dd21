#pragma once
// Defines a temporary directory that is deleted when its object is destroyed.

#include <string>

namespace reprise::driver {

class ScratchDirectory {
 public:
  /// Creates the directory. Throws IO if that fails.
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace reprise::driver
