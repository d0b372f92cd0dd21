#pragma once
// Defines a temporary directory that is deleted when its object is destroyed.

#include <string>
#include <vector>

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

/// Returns the directories of this process that exist now: those in use, and those that could not
/// be deleted.
std::vector<std::string> scratch_directories();

}  // namespace reprise::driver
