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
  int exit_code = -1;  ///< 128 plus the signal's number if a signal ended the program
  std::string out;
  std::string err;
  std::uint64_t peak_rss_bytes = 0;

  std::string all() const { return out + err; }
};

/// False under sanitizers, which reserve more address space than any limit allows. In this case,
/// address_space_bytes is ignored.
inline constexpr bool kAddressSpaceLimited = REPRISE_SANITIZED == 0;

/// A signal for the program. It arrives during the program's first call that causes `event` in
/// `directory`.
struct Tripwire {
  std::string directory;
  int event = 0;  ///< DN_CREATE or DN_RENAME
  int signal = 0;
};
/// True if the kernel can send a signal when a directory changes (see Tripwire).
bool has_tripwires();

struct RunLimits {
  int seconds = 60;  ///< time after which the program is killed
  std::optional<std::uint64_t> address_space_bytes = {};  ///< ignored under sanitizers
  std::optional<std::uint64_t> file_bytes = {};  ///< limit on the size of files (RLIMIT_FSIZE)
  std::string out = {};  ///< file for the output; ProgramResult then has none
  std::optional<Tripwire> tripwire = {};
};

ProgramResult run_program(const std::vector<std::string>& arguments, const RunLimits& limits = {});

/// Expects the words somewhere in what the program printed.
void expect_says(const ProgramResult& result, const std::string& words);

/// Returns the bytes of a file; empty if it can't be opened.
std::string text_of(const std::filesystem::path& file);

}  // namespace reprise::test
