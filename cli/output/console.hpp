#pragma once
// Output streams of a verb, and facts about the environment that main collected.

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>

#include "reprise/types.hpp"

namespace reprise::cli {

struct Console {
  std::ostream& out;
  std::ostream& err;
  std::size_t out_width = 0;  ///< columns of the terminal on stdout; 0: none, nothing is shortened
  bool err_is_terminal = false;
  std::ostream* terminal = nullptr;  ///< `err` for code that moves its cursor
  std::string executable = {};       ///< path of this program, to start it again
  /// Rank of this process if an MPI launcher started it.
  std::optional<GlobalRank> launched_as = {};
};

}  // namespace reprise::cli
