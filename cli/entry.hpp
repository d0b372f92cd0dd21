#pragma once
// Runs the verbs of a program as its process: with the arguments, the terminal and the environment
// that it was started with.

#include "cli/frame/verb.hpp"

namespace reprise::cli {

/// Runs the verb that the command line names. Returns the exit code of the process.
ExitCode run_process(int argc, char** argv, const Verbs& verbs);

}  // namespace reprise::cli
