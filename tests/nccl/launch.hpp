#pragma once
// What a test needs to know about its process: the MPI session, the device, and whether NCCL can
// run. main() sets it.

#include <string>

#include "core/adapters/mpi/mpi_session.hpp"

namespace reprise::contracts {

struct Launch {
  MpiSession* session = nullptr;
  int device = 0;
  std::string why_not;  ///< why NCCL can't run, the same text on all ranks; empty if it can
};

Launch& shared_launch();

}  // namespace reprise::contracts
