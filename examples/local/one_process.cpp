// Saves, loads and compares in one process.
#include <iostream>
#include <numeric>
#include <reprise/reprise.hpp>
#include <vector>

int main() {
  auto job = reprise::local_job("ckpt");
  auto alone = reprise::Mesh({{"dp", 1}});
  auto whole = reprise::sharded({64, 32}, alone, {}, job.rank());
  std::vector<float> w(whole.local_elements());
  std::iota(w.begin(), w.end(), 0.5F);
  const auto before = w;

  reprise::State state;
  state.add("w", whole, w.data());
  state.add_object("rng", reprise::same_on_all(job.rank()), "seed 7");
  state.common()["iteration"] = 10;
  reprise::save(job, state, {.directory = "one", .step = 10});

  std::fill(w.begin(), w.end(), 0.0F);
  reprise::load(job, state, {.directory = "one"});
  const auto found = reprise::verify(job, "one");
  std::cout << "run: " << name_of(found.verdict) << ", " << found.elements << " elements\n";
  return w == before && found.verdict == reprise::VerifyVerdict::kWhole ? 0 : 1;
}
