#include "cli/arguments/checkpoint_argument.hpp"

#include <system_error>

#include "reprise/error.hpp"

namespace reprise::cli {

StoredPath stored_path(const std::string& argument) {
  std::filesystem::path path(argument);
  // Removes a trailing slash: "ckpt/" means the same as "ckpt".
  if (!path.has_filename()) path = path.parent_path();
  const std::string name = path.filename().string();
  if (name.empty() || name == "." || name == "..") {
    path = resolved(argument.empty() ? "." : argument);
  }
  // What NeMo says of a checkpoint stands beside the directory around its weights.
  const std::filesystem::path above = path.parent_path();
  if (path.filename() == "weights" && above.has_filename() && above.filename() != "..") {
    return {std::make_unique<PosixStore>(above.parent_path().string()),
            (above.filename() / path.filename()).string()};
  }
  return {std::make_unique<PosixStore>(above.string()), path.filename().string()};
}

std::filesystem::path resolved(const std::string& path) {
  std::error_code error;
  auto absolute = std::filesystem::absolute(path, error);
  if (!error) absolute = std::filesystem::weakly_canonical(absolute, error);
  if (error) {
    throw Error(Code::kIo, "the path can't be resolved: " + error.message(), {.file = path});
  }
  return absolute;
}

Findings require_whole(Store& store, const std::string& path, const std::string& what,
                       PayloadCheck payload, Progress& progress) {
  Findings findings = verify(store, path, payload, progress).findings;
  for (const Finding& finding : findings) {
    if (finding.severity != Severity::kError) continue;
    throw Error(finding.code, what + " is not whole: " + finding.message,
                {.key = finding.key, .file = finding.file, .offset = finding.offset});
  }
  return findings;
}

}  // namespace reprise::cli
