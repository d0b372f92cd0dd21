#pragma once
// Where a verb prints to, and what main learned of the surroundings.

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>

#include "reprise/types.hpp"

namespace reprise::cli {

struct Console {
  std::ostream& out;
  std::ostream& err;
  std::size_t out_width = 0;  ///< columns if stdout is a terminal; 0: not one, nothing is shortened
  bool err_is_terminal = false;
  std::ostream* terminal = nullptr;  ///< `err` for those who move its cursor
  std::string executable = {};       ///< path of this program, for launching it again
  /// This process's number among those that a launcher of MPI programs started.
  std::optional<GlobalRank> launched_as = {};
};

}  // namespace reprise::cli
