#pragma once
// A temporary directory that lives as long as the object.

#include <string>

namespace reprise::driver {

class ScratchDirectory {
 public:
  /// Throws IO if the directory can't be created.
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace reprise::driver
