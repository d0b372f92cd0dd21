// Rank 0 ends its job. Rank 1 keeps its own job until rank 0 has ended.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <reprise/reprise.hpp>
#include <thread>

int main() {
  std::optional job = reprise::mpi_job("ckpt", {.deadline = std::chrono::seconds(1)});
  if (job->rank().value == 0) {
    job.reset();
    std::ofstream("gone") << "gone";
    return 0;
  }
  while (!std::filesystem::exists("gone")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::_Exit(0);
}
