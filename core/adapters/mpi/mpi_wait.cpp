#include "core/adapters/mpi/mpi_wait.hpp"

#include "core/adapters/mpi/mpi_call.hpp"

namespace reprise {

void finish_mpi(CallDeadline& deadline, const std::function<int(MPI_Request*)>& start) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(start(&request), deadline.describe(), deadline.self());
  deadline.until([&] {
    int done = 0;
    const int result = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (result != MPI_SUCCESS) check_mpi(result, deadline.describe(), deadline.self());
    return done != 0;
  });
}

}  // namespace reprise
