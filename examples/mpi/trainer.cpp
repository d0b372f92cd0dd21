#include <reprise/reprise.hpp>
int main() {
  auto job = reprise::mpi_job("ckpt");
  auto mesh = reprise::Mesh({{"dp", job.world_size()}});
  auto rows = reprise::sharded({1024, 1024}, mesh, {{"dp", 0}}, job.rank());
  std::vector<float> w(rows.local_elements(), 1.0F);
  reprise::State state;
  state.add("w", rows, w.data());
  const auto newest = reprise::Fallback::kNewestWhole;
  const auto last = reprise::load_if_any(job, state, {.directory = "run", .fallback = newest});
  const std::int64_t step = last ? *last->step + 10 : 10;
  for (auto& x : w) x = x * 1.25F + static_cast<float>(step);
  state.common()["iteration"] = step;
  reprise::save(job, state, {.directory = "run", .step = step});
}
