// Saves a state as a PyTorch job has it, in the form that torch.distributed.checkpoint reads.
#include <csignal>
#include <iostream>
#include <reprise/reprise.hpp>
#include <vector>

volatile std::sig_atomic_t stop = 0;

int main() {
  std::signal(SIGINT, [](int) { stop = 1; });
  auto job = reprise::local_job("ckpt", {.interrupted = [] { return stop != 0; }});

  std::vector<float> memory(12);  // a [3, 4] tensor, and views of it
  std::vector<float> first(2, 1), second(4, 2);
  const std::vector<reprise::TensorPart> transposed = {
      {.offset = {0, 0}, .extent = {4, 3}, .data = memory.data(), .strides = {1, 4}}};
  const std::vector<reprise::TensorPart> halves = {
      {.offset = {0}, .extent = {2}, .data = first.data()},
      {.offset = {2}, .extent = {4}, .data = second.data()}};
  std::vector<float> deep(24, 3);
  const reprise::Dims folded = {2, 1, 1, 1, 1, 1, 1, 12};
  const std::vector<reprise::TensorPart> whole = {
      {.offset = reprise::Dims::filled(8, 0), .extent = folded, .data = deep.data()}};
  const reprise::Bytes lr = {std::byte{0x80}, std::byte{2}, std::byte{'K'}, std::byte{7}};

  reprise::State state;
  state.common() = reprise::NoneType{};  // torch has none
  state.add("model.weight", reprise::DType::kFloat32, {4, 3}, transposed);
  state.add("model.gate", reprise::DType::kFloat32, {6}, halves);
  state.add("model.deep", reprise::DType::kFloat32, folded, whole);
  state.set_folded("model.deep", {3, 2, 2});       // torch reads [2, 1, 1, 1, 1, 1, 1, 3, 2, 2]
  state.add_bytes("optim.param_groups.0.lr", lr);  // as torch.save wrote them
  state.set_path("optim.param_groups.0.lr", {"optim", "param_groups", std::int64_t{0}, "lr"});

  reprise::SaveResult saved;
  for (int step = 1; step <= 3; ++step) {
    for (auto& x : memory) x += 1;
    saved = reprise::save(job, state,
                          {.directory = "torch",
                           .step = step,
                           .step_names = "step-%d",
                           .keep = 2,
                           .compare_tensors = true});
    std::cout << saved.directory << ": plan " << name_of(saved.planned) << '\n';
  }
  memory.assign(memory.size(), 0);
  const auto loaded = reprise::load(job, state, {.directory = "torch", .step_names = "step-%d"});
  std::cout << loaded.directory << ": " << loaded.elements << " elements\n";
  return memory.back() == 3 && state.bytes("optim.param_groups.0.lr") == lr ? 0 : 1;
}
