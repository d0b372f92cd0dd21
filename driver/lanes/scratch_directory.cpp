#include "driver/lanes/scratch_directory.hpp"

#include <unistd.h>

#include <filesystem>

#include "reprise/error.hpp"

namespace reprise::driver {

ScratchDirectory::ScratchDirectory()
    : path_((std::filesystem::temp_directory_path() / "reprise-XXXXXX").string()) {
  if (::mkdtemp(path_.data()) == nullptr) throw Error(Code::kIo, "mkdtemp", {.file = path_});
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace reprise::driver
