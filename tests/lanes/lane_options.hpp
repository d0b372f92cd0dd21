#pragma once
// Options for the scenarios in this folder's tests, which run the program of this build.

#include "driver/lanes/lane.hpp"

namespace reprise::driver {

inline LaneOptions lane_options() {
  LaneOptions options;
  options.executable = REPRISE_EXE;
  return options;
}

}  // namespace reprise::driver
