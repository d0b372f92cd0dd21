#pragma once
// The session of this process, made by main.

#include "core/adapters/mpi/mpi_session.hpp"

namespace reprise::contracts {

MpiSession*& shared_session();

}  // namespace reprise::contracts
