// Describes this program: its version, commit and build type. --version prints them, and every
// report contains them.
#pragma once

#include <string_view>

namespace reprise {

struct BuildInfo {
  std::string_view version;  // version of the project in CMakeLists.txt, such as "0.1.0"
  std::string_view commit;   // full hash, or "unknown" outside a git clone
  bool dirty;                // true if the tree differed from the commit, untracked files included
  std::string_view build;    // build type and compiler, such as "Release GNU 12.2.0"
  bool has_mpi;              // true if the MPI adapters are built in; MPI may still fail to start
  bool has_cuda;
  bool has_nccl;
};

BuildInfo build_info();

}  // namespace reprise
