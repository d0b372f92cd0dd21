// Makes a job whose tensors are on the device named in the command line.
#include <cstdlib>
#include <iostream>
#include <reprise/reprise.hpp>

int main(int, char** argv) {
  try {
    const auto device = reprise::cuda_device(std::atoi(argv[1]));
    const auto job = reprise::local_job("ckpt", {.device = device});
    std::cout << "on " << job.ports().device.name() << "\n";
  } catch (const reprise::Error& error) {
    std::cout << error.what() << "\n";
  }
}
