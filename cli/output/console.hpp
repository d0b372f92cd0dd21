#pragma once
// Defines what a verb may use to talk to the user: output streams, and facts about the environment
// that main() collected.

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>

#include "reprise/types.hpp"

namespace reprise::cli {

struct Console {
  std::ostream& out;
  std::ostream& err;
  /// Width of the terminal on stdout, in columns. It is 0 if stdout is no terminal; then nothing is
  /// shortened.
  std::size_t out_width = 0;
  bool err_is_terminal = false;
  std::ostream* terminal = nullptr;  ///< the unfiltered stderr, for code that moves the cursor
  std::string executable = {};       ///< path of this program, used to start it again
  /// Rank of this process if an MPI launcher started it.
  std::optional<GlobalRank> launched_as = {};
};

}  // namespace reprise::cli
