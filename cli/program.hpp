#pragma once
// Reads the command line, runs one verb, and turns exceptions into messages and exit codes. Only
// this file does so.

#include <memory>
#include <string>
#include <vector>

#include "cli/frame/exit_code.hpp"
#include "cli/frame/verb.hpp"
#include "cli/output/console.hpp"

namespace CLI {
class App;
}

namespace reprise::cli {

/// Returns the parser of the command line, with the arguments that the verbs declare. The verbs
/// must outlive it.
std::shared_ptr<CLI::App> parser_of(const Verbs& verbs);

/// Runs the program. `arguments` does not contain the program's name.
ExitCode run_program(const std::vector<std::string>& arguments, const Verbs& verbs,
                     const Console& console);

}  // namespace reprise::cli
