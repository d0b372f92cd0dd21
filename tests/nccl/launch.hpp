#pragma once
// What this process is within the launch of the tests; made by main.

#include <string>

#include "core/adapters/mpi/mpi_session.hpp"

namespace reprise::contracts {

struct Launch {
  MpiSession* session = nullptr;
  int device = 0;
  std::string why_not;  ///< nothing of NCCL can be run; the same on all ranks
};

Launch& shared_launch();

}  // namespace reprise::contracts
