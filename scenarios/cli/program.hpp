#pragma once
// Reads the command line, runs one verb, and turns what it throws into words and an exit code: the
// only place where that is done.

#include <string>
#include <vector>

#include "scenarios/cli/console.hpp"
#include "scenarios/cli/exit_code.hpp"
#include "scenarios/cli/verb.hpp"

namespace reprise::cli {

/// `arguments` without the program's name.
ExitCode run_program(const std::vector<std::string>& arguments, const Verbs& verbs,
                     const Console& console);

}  // namespace reprise::cli
