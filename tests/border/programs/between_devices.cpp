// Makes a job that sends what it loads between devices, from the one named in the command line.
#include <cstdlib>
#include <iostream>
#include <reprise/reprise.hpp>

int main(int, char** argv) {
  try {
    reprise::JobPorts ports = reprise::local_ports("ckpt");
    ports.data = reprise::nccl_fabric(ports.fabric, std::atoi(argv[1]));
    const reprise::Job job(std::move(ports));
    std::cout << "rank " << job.rank() << "\n";
  } catch (const reprise::Error& error) {
    std::cout << error.what() << "\n";
  }
}
