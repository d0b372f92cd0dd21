#pragma once
// Runs the program and takes what it prints.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/contracts/sanitized.hpp"

namespace reprise::test {

struct ProgramResult {
  int exit_code = -1;  ///< 128 + the signal if one ended it
  std::string out;
  std::string err;
  std::uint64_t peak_rss_bytes = 0;

  std::string all() const { return out + err; }
};

/// Sanitizers reserve more addresses than any limit leaves.
inline constexpr bool kAddressSpaceLimited = REPRISE_SANITIZED == 0;

/// A signal that the program gets within the call that first does something in a directory.
struct Tripwire {
  std::string directory;
  int event = 0;  ///< DN_CREATE, DN_RENAME
  int signal = 0;
};
/// True if the kernel has what tripwires are made of.
bool has_tripwires();

struct RunLimits {
  int seconds = 60;                                       ///< after that it is killed
  std::optional<std::uint64_t> address_space_bytes = {};  ///< left out under sanitizers
  std::string out = {};                                   ///< in place of a file that is read back
  std::optional<Tripwire> tripwire = {};
};

ProgramResult run_program(const std::vector<std::string>& arguments, const RunLimits& limits = {});

/// Returns the bytes of a file, none if it can't be opened.
std::string text_of(const std::filesystem::path& file);

}  // namespace reprise::test
