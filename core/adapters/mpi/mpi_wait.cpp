#include "core/adapters/mpi/mpi_wait.hpp"

#include "core/adapters/mpi/mpi_call.hpp"

namespace reprise {

void finish_mpi(Patience& patience, const std::function<int(MPI_Request*)>& start) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(start(&request), patience.describe(), patience.self());
  patience.until([&] {
    int done = 0;
    const int result = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (result != MPI_SUCCESS) check_mpi(result, patience.describe(), patience.self());
    return done != 0;
  });
}

}  // namespace reprise
