#pragma once
// A directory of its own for as long as the object lives.

#include <string>

namespace reprise::driver {

class ScratchDirectory {
 public:
  /// IO if none can be made.
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace reprise::driver
