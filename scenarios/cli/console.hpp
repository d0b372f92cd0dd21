#pragma once
// Where a verb prints to, and what main learned of the surroundings.

#include <cstddef>
#include <ostream>
#include <string>

namespace reprise::cli {

struct Console {
  std::ostream& out;
  std::ostream& err;
  std::size_t out_width = 0;  ///< columns if stdout is a terminal; 0: not one, nothing is shortened
  bool err_is_terminal = false;
  std::string executable = {};  ///< path of this program, for launching it again
};

}  // namespace reprise::cli
