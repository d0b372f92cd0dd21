// What this program was built from: printed by --version and written into every report.
#pragma once

#include <string_view>

namespace reprise {

struct BuildInfo {
  std::string_view version;  // of the project, as CMakeLists.txt says it: "0.1.0"
  std::string_view commit;   // full hash, or "unknown" outside a git clone
  bool dirty;                // the tree differed from the commit, untracked files included
  std::string_view build;    // build type and compiler: "Release GNU 12.2.0"
  bool has_mpi;              // adapters compiled in; their libraries may still fail at run time
  bool has_cuda;
  bool has_nccl;
};

BuildInfo build_info();

}  // namespace reprise
