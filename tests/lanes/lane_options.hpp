#pragma once
// How the tests of this folder run scenarios: by the program that was built with them.

#include "scenarios/driver/lane.hpp"

namespace reprise::driver {

inline LaneOptions lane_options() {
  LaneOptions options;
  options.executable = REPRISE_EXE;
  return options;
}

}  // namespace reprise::driver
