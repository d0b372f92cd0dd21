#pragma once
// Options for running scenarios in the tests of this folder. They select the `reprise` executable
// of this build.

#include "driver/lanes/lane.hpp"

namespace reprise::driver {

inline LaneOptions lane_options() {
  LaneOptions options;
  options.executable = REPRISE_EXE;
  return options;
}

}  // namespace reprise::driver
