// Saves what a planner of the job's own assigns to each rank.
#include <iostream>
#include <reprise/reprise.hpp>
#include <vector>

int main() {
  auto job = reprise::local_job("ckpt");
  std::vector<float> w(8, 1);
  const std::vector<reprise::TensorPart> parts = {
      {.offset = {0}, .extent = {4}, .data = w.data()},
      {.offset = {4}, .extent = {4}, .data = w.data() + 4}};
  reprise::State state;
  state.add("w", reprise::DType::kFloat32, {8}, parts);
  state.add_bytes("step", {std::byte{1}});

  // With more ranks, each passes what it writes; together they pass everything once.
  const std::vector<reprise::WriteItem> mine = {{"w", {0}}, {"w", {4}}, {"step"}};
  const auto saved = reprise::save(job, state, {.directory = "planned"}, mine);
  std::cout << saved.tensors << " tensor, " << saved.objects << " object\n";
  try {
    reprise::save(job, state, {.directory = "planned"}, std::vector{mine[0]});
  } catch (const reprise::Error& error) {
    std::cout << error.what() << '\n';
    return error.code() == reprise::Code::kNoWriter ? 0 : 1;
  }
  return 1;
}
