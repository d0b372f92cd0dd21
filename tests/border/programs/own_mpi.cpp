// A program that makes MPI calls of its own. While a job saves and loads, one of the program's
// receives is waiting for any message on MPI_COMM_WORLD.
#include <mpi.h>

#include <chrono>
#include <iostream>
#include <reprise/reprise.hpp>
#include <vector>

namespace {

bool saves_and_loads() {
  auto job = reprise::mpi_job("ckpt", {.deadline = std::chrono::seconds(20)});
  const auto mesh = reprise::Mesh({{"dp", job.world_size()}});
  const auto rows = reprise::sharded({64, 8}, mesh, {{"dp", 0}}, job.rank());
  std::vector<float> w(rows.local_elements(), 1.5F);
  reprise::State state;
  state.add("w", rows, w.data());
  reprise::save(job, state, {.directory = "own"});
  w.assign(w.size(), 0);
  reprise::load(job, state, {.directory = "own"});
  return w == std::vector<float>(w.size(), 1.5F);
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int got = -1;
  MPI_Request receive = MPI_REQUEST_NULL;
  MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
  try {
    const bool same = saves_and_loads();
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    std::cout << rank << ": same " << same << ", from " << got << "\n";
  } catch (const reprise::Error& error) {
    std::cout << error.what() << std::endl;
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return MPI_Finalize();
}
