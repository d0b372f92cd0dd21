#include "scenarios/cli/checkpoint_argument.hpp"

#include <filesystem>

namespace reprise::cli {

StoredPath stored_path(const std::string& argument) {
  std::filesystem::path path(argument);
  if (!path.has_filename()) path = path.parent_path();  // "ckpt/" is "ckpt"
  const std::string name = path.filename().string();
  if (name.empty() || name == "." || name == "..") {
    path = std::filesystem::weakly_canonical(argument.empty() ? "." : argument);
  }
  return {std::make_unique<PosixStore>(path.parent_path().string()), path.filename().string()};
}

}  // namespace reprise::cli
