#pragma once
// This process's place in the launch of the tests, which main sets.

#include <string>

#include "core/adapters/mpi/mpi_session.hpp"

namespace reprise::contracts {

struct Launch {
  MpiSession* session = nullptr;
  int device = 0;
  std::string why_not;  ///< reason why NCCL can't run, the same on all ranks; else empty
};

Launch& shared_launch();

}  // namespace reprise::contracts
