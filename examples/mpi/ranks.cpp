// Saves a sharded tensor with `mpirun -n 4 ranks save`, and loads it on fewer ranks with `mpirun -n
// 2 ranks`.
#include <iostream>
#include <reprise/reprise.hpp>
#include <vector>

int main(int argc, char**) {
  auto job = reprise::mpi_job("ckpt");
  auto mesh = reprise::Mesh({{"tp", job.world_size()}});
  auto columns = reprise::sharded({96, 100}, mesh, {{"tp", 1}}, job.rank());
  std::vector<float> w(columns.local_elements());
  const auto expected = [&](std::size_t i) {
    const auto wide = static_cast<std::size_t>(columns.extent[1]);
    const auto column = static_cast<std::size_t>(columns.offset[1]) + i % wide;
    return static_cast<float>(i / wide * 100 + column);
  };
  reprise::State state;
  state.add("w", columns, w.data());
  if (argc > 1) {
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = expected(i);
    reprise::save(job, state, {.directory = "ranks"});
    return 0;
  }
  const auto loaded = reprise::load(job, state, {.directory = "ranks"});
  std::size_t same = 0;
  for (std::size_t i = 0; i < w.size(); ++i) same += w[i] == expected(i) ? 1 : 0;
  std::cout << job.rank() << ": " << same << " of " << loaded.elements << " elements\n";
  return same == w.size() ? 0 : 1;
}
