#pragma once
// Reads the command line, runs one verb, and turns its exceptions into messages and exit codes. No
// other file does that.

#include <string>
#include <vector>

#include "scenarios/cli/console.hpp"
#include "scenarios/cli/exit_code.hpp"
#include "scenarios/cli/verb.hpp"

namespace reprise::cli {

/// `arguments` excludes the program's name.
ExitCode run_program(const std::vector<std::string>& arguments, const Verbs& verbs,
                     const Console& console);

}  // namespace reprise::cli
