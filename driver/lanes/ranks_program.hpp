#pragma once
// Finds the program whose processes are the ranks of the lanes mpi and gpu. It is the only program
// that needs MPI and NCCL to start; reading checkpoints and simulating take neither.

#include <optional>
#include <string>

namespace reprise::driver {

/// Returns the path of the ranks' program, which stands beside `executable`, the program that the
/// user started.
std::string ranks_program(const std::string& executable);

/// Returns the reason why there is no such program; nothing if it is there.
std::optional<std::string> why_no_ranks(const std::string& executable);

/// The libraries that ranks communicate with.
struct RankLibraries {
  std::string mpi;   ///< name and version of the MPI library; empty if it can't be told
  std::string nccl;  ///< "major.minor.patch"; empty if there is none or it can't be told
};

/// Asks the ranks' program for its libraries.
RankLibraries libraries_of_ranks(const std::string& executable);

/// Returns the text that the program answers, and reads it back.
std::string to_string(const RankLibraries& libraries);
RankLibraries parse_libraries(const std::string& text);

}  // namespace reprise::driver
