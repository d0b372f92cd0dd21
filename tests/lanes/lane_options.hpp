#pragma once
// The options of the scenarios that the tests in this folder run. They select the `reprise`
// executable of this build.

#include "driver/lanes/lane.hpp"

namespace reprise::driver {

inline LaneOptions lane_options() {
  LaneOptions options;
  options.executable = REPRISE_EXE;
  return options;
}

}  // namespace reprise::driver
