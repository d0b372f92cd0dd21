// Keeps training while a checkpoint is being written.
#include <iostream>
#include <optional>
#include <reprise/reprise.hpp>
#include <vector>

int main() {
  auto job = reprise::local_job("ckpt");
  auto alone = reprise::Mesh({{"dp", 1}});
  auto whole = reprise::sharded({1 << 20}, alone, {}, job.rank());
  std::vector<double> w(whole.local_elements());
  reprise::State state;
  state.add("w", whole, w.data());
  std::optional<reprise::SaveInFlight> saving;
  for (int step = 1; step <= 20; ++step) {
    for (auto& x : w) x += 1;
    if (saving && saving->poll()) saving.reset();
    if (step % 10 != 0) continue;
    if (saving) saving->finish();  // waits for the previous save
    state.common()["iteration"] = step;
    saving = reprise::begin_save(job, state, {.directory = "async", .step = step, .keep = 1});
  }
  saving->finish();
  w.assign(w.size(), 0);
  const auto loaded = reprise::load(job, state, {.directory = "async"});
  std::cout << loaded.directory << ": " << loaded.elements << " elements\n";
  return w.front() == 20 && w.back() == 20 ? 0 : 1;
}
