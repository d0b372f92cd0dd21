#pragma once
// Defines what main() passes to a verb: the output streams and facts about the environment.

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>

#include "reprise/types.hpp"

namespace reprise::cli {

struct Console {
  std::ostream& out;
  std::ostream& err;
  /// Width of the terminal on stdout, in columns. It is 0 if stdout is not a terminal; the output
  /// is then not shortened.
  std::size_t out_width = 0;
  bool err_is_terminal = false;
  std::ostream* terminal = nullptr;  ///< the unfiltered stderr, for code that moves the cursor
  std::string executable = {};       ///< path of this program, used to start it again
  /// Rank of this process if an MPI launcher started it.
  std::optional<GlobalRank> launched_as = {};
};

}  // namespace reprise::cli
