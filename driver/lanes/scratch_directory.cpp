#include "driver/lanes/scratch_directory.hpp"

#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <set>

#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

std::mutex scratch_mutex;
std::set<std::string> scratch_paths;  ///< guarded by scratch_mutex

}  // namespace

ScratchDirectory::ScratchDirectory()
    : path_((std::filesystem::temp_directory_path() / "reprise-XXXXXX").string()) {
  if (::mkdtemp(path_.data()) == nullptr) throw Error(Code::kIo, "mkdtemp", {.file = path_});
  const std::lock_guard lock(scratch_mutex);
  scratch_paths.insert(path_);
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (std::filesystem::exists(path_, ignored)) return;
  const std::lock_guard lock(scratch_mutex);
  scratch_paths.erase(path_);
}

std::vector<std::string> scratch_directories() {
  const std::lock_guard lock(scratch_mutex);
  return {scratch_paths.begin(), scratch_paths.end()};
}

}  // namespace reprise::driver
