#pragma once
// Finds the program whose processes are the ranks of the lanes mpi and gpu. It is the only program
// that needs MPI and NCCL to start; reading checkpoints and simulating take neither.

#include <optional>
#include <string>

namespace reprise::driver {

/// Returns the path of the ranks' program, which stands beside `executable`, the program that the
/// user started.
std::string ranks_program(const std::string& executable);

/// Returns the reason why no ranks can be started; nothing if they can. The ranks' program must be
/// of the same commit and build as this one: what another program does is no evidence of this one.
/// Asks the program once for each path.
std::optional<std::string> why_no_ranks(const std::string& executable);

/// Describes the ranks' program in its own words: which program it is, and the libraries that ranks
/// communicate with.
struct RankLibraries {
  std::string program;  ///< commit and build; empty if it can't be told
  std::string mpi;      ///< name and version of the MPI library; empty if it can't be told
  std::string nccl;     ///< "major.minor.patch"; empty if there is none or it can't be told
};

/// Returns the commit and the build of this program, as the ranks' program says them.
std::string this_program();

/// Asks the ranks' program for its libraries. All are empty if no ranks can be started.
RankLibraries libraries_of_ranks(const std::string& executable);

/// Returns the text that the program answers, and reads it back.
std::string to_string(const RankLibraries& libraries);
RankLibraries parse_libraries(const std::string& text);

}  // namespace reprise::driver
