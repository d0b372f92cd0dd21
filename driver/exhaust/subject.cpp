#include "driver/exhaust/subject.hpp"

#include <array>

namespace reprise::driver {
namespace {

constexpr std::uint64_t kSeedOfSave = 1;
constexpr std::int32_t kRanksPerNode = 2;
constexpr std::uint64_t kSeedOfLoad = 1000003;

}  // namespace

sim::JobConfig saving_config(const Subject& subject, const sim::Layout& layout) {
  sim::JobConfig config;
  config.makeup.modules = {{.name = "model",
                            .model = subject.model,
                            .layout = layout,
                            .optimizer_sharding = subject.sharding}};
  config.training.seed = kSeedOfSave;
  config.hardware.ranks_per_node = kRanksPerNode;
  config.rerun.mode = sim::RerunMode::kValidateResults;
  return config;
}

sim::JobConfig loading_config(const Subject& subject, const sim::Layout& layout) {
  sim::JobConfig config = saving_config(subject, layout);
  config.training.seed = kSeedOfLoad;
  return config;
}

void overwrite(const StateDict& state) {
  constexpr std::size_t kWidest = 16;
  std::array<std::byte, kWidest> element{};
  element.fill(kBeforeLoad);
  for (const auto& leaf : state.tensors) {
    const std::size_t width = size_of(leaf.dtype);
    for (const auto& piece : leaf.pieces) {
      if (piece.box.elements() == 0) continue;
      copy_strided({element.data(), Dims::filled(piece.box.ndim(), 0)},
                   {leaf.data + static_cast<std::size_t>(piece.local) * width, piece.strides},
                   piece.box.extent, width);
    }
  }
}

}  // namespace reprise::driver
