#pragma once
// Runs a life that is the command of another program. Used for scenarios of jobs and of trainers.

#include <string>

#include "driver/lanes/process.hpp"
#include "driver/trainers/command_life.hpp"

namespace reprise::driver {

struct CommandEnd {
  ProcessEnd process;
  std::string log;  ///< the end of the program's output
};

/// Runs the command. The word {checkpoints} in the command is replaced by the directory
/// `checkpoints`, which is created if it does not exist. `reprise` is the path of this program.
/// Throws IO if the command can't be started.
CommandEnd run_command(const CommandLife& life, const std::string& checkpoints,
                       const std::string& reprise);

/// Returns how the command's end differs from the planned end; empty if it does not.
std::string complaint_of(const CommandLife& life, const CommandEnd& end);

}  // namespace reprise::driver
