// Saves a sharded tensor from four processes that no launcher starts, and loads it in any number of
// processes. Each is told by the environment which rank it is: RANK, WORLD_SIZE and MASTER, the
// address where rank 0 listens.
#include <cstdlib>
#include <iostream>
#include <reprise/reprise.hpp>
#include <stdexcept>

int main(int argc, char**) try {
  const auto said = [](const char* name) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::string(text)
                           : throw std::runtime_error(std::string("set ") + name);
  };
  auto job = reprise::socket_job("ckpt", {.rank = std::stoi(said("RANK")),
                                          .size = std::stoi(said("WORLD_SIZE")),
                                          .address = said("MASTER")});
  auto mesh = reprise::Mesh({{"dp", job.world_size()}});
  auto rows = reprise::sharded({100, 64}, mesh, {{"dp", 0}}, job.rank());
  std::vector<float> w(rows.local_elements());
  const auto first = static_cast<std::size_t>(rows.offset[0]) * 64;
  reprise::State state;
  state.add("w", rows, w.data());
  if (argc > 1) {
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(first + i);
    reprise::save(job, state, {.directory = "run"});
    return 0;
  }
  const auto loaded = reprise::load(job, state, {.directory = "run"});
  std::size_t same = 0;
  for (std::size_t i = 0; i < w.size(); ++i) same += w[i] == static_cast<float>(first + i) ? 1 : 0;
  std::cout << job.rank() << ": " << same << " of " << loaded.elements << " elements\n";
  return same == w.size() ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
