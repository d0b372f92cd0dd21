#include "cli/output/text_output.hpp"

#include <filesystem>
#include <system_error>

#include "core/adapters/posix/posix_store.hpp"
#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {

namespace fs = std::filesystem;

void require_text_place(const std::string& path, const std::string& what) {
  if (path.empty()) return;
  const auto refuse = [&](const std::string& why) {
    throw Error(Code::kIo, what + " can't be written: " + why, {.file = path});
  };
  std::error_code unknown;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, unknown)) refuse("its folder does not exist");
  const auto there = fs::status(path, unknown);
  if (fs::exists(there) && !fs::is_regular_file(there) && !fs::is_character_file(there)) {
    refuse("this is a directory or a pipe, not a file");
  }
}

void write_text(const std::string& path, std::string_view text, const std::string& what) {
  require_text_place(path, what);
  std::error_code unresolved;
  const fs::path target = fs::weakly_canonical(path, unresolved);
  const fs::path file = unresolved ? fs::path(path) : target;
  try {
    PosixStore folder(file.parent_path().string());
    const auto out = folder.create(file.filename().string());
    out->write_at(0, as_bytes(text));
    out->close();
  } catch (const Error& error) {
    throw Error(error.code(), what + " can't be written: " + error.message(), {.file = path});
  }
}

}  // namespace reprise::cli
