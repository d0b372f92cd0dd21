// Keeps two saves in flight while it trains; a queue commits them in the order in which they began.
#include <iostream>
#include <reprise/reprise.hpp>
#include <vector>

int main() {
  auto job = reprise::local_job("ckpt");
  auto alone = reprise::Mesh({{"dp", 1}});
  auto whole = reprise::sharded({1 << 20}, alone, {}, job.rank());
  std::vector<double> w(whole.local_elements());
  reprise::State state;
  state.add("w", whole, w.data());
  int saved = 0;
  reprise::SaveQueue saves(2);
  for (int step = 1; step <= 20; ++step) {
    saves.wait_for_staging();  // before the state changes
    for (auto& x : w) x += 1;
    saves.poll();
    if (step % 5 != 0) continue;
    state.common()["iteration"] = step;
    const reprise::SaveOptions options{.directory = "queued",
                                       .step = step,
                                       .keep = 2,
                                       .returns = reprise::BeginReturns::kWhenQueued};
    saves.begin(job, state, options, [&](const reprise::EndedSave& end) {
      if (end.error) throw *end.error;
      std::cout << end.result.directory << ": " << reprise::name_of(end.result.planned) << '\n';
      ++saved;
    });
  }
  saves.finalize();
  w.assign(w.size(), 0);
  reprise::load(job, state, {.directory = "queued"});
  return saved == 4 && w.front() == 20 && w.back() == 20 ? 0 : 1;
}
