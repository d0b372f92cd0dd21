#pragma once
// Runs the program and captures its output.

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

/// Sanitizers reserve more address space than any limit allows.
inline constexpr bool kAddressSpaceLimited = REPRISE_SANITIZED == 0;

/// Sends the program a signal during its first call that causes an event in a directory.
struct Tripwire {
  std::string directory;
  int event = 0;  ///< DN_CREATE, DN_RENAME
  int signal = 0;
};
/// True if the kernel supports tripwires.
bool has_tripwires();

struct RunLimits {
  int seconds = 60;                                       ///< limit, after which it is killed
  std::optional<std::uint64_t> address_space_bytes = {};  ///< ignored under sanitizers
  std::string out = {};                                   ///< instead of a file that is read back
  std::optional<Tripwire> tripwire = {};
};

ProgramResult run_program(const std::vector<std::string>& arguments, const RunLimits& limits = {});

/// Returns the bytes of a file; empty if it can't be opened.
std::string text_of(const std::filesystem::path& file);

}  // namespace reprise::test
