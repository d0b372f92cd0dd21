#pragma once
// Returns the session of this process, which main created.

#include "core/adapters/mpi/mpi_session.hpp"

namespace reprise::contracts {

MpiSession*& shared_session();

}  // namespace reprise::contracts
