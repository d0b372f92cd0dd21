#include "driver/exhaust/layout_space.hpp"

namespace reprise::driver {
namespace {

std::vector<std::int32_t> divisors_of(std::int32_t number) {
  std::vector<std::int32_t> divisors;
  for (std::int32_t d = 1; d <= number; ++d) {
    if (number % d == 0) divisors.push_back(d);
  }
  return divisors;
}

/// Adds all layouts that combine one dense mesh with any expert mesh on the same ranks.
void add_expert_meshes(const sim::Layout& dense, std::int32_t ranks,
                       std::vector<sim::Layout>& layouts) {
  for (const auto etp : divisors_of(ranks)) {
    for (const auto ep : divisors_of(ranks / etp)) {
      sim::Layout layout = dense;
      layout.etp = etp;
      layout.ep = ep;
      layouts.push_back(layout);
    }
  }
}

void add_layouts_of(std::int32_t world, DpCuts cuts, std::vector<sim::Layout>& layouts) {
  for (const auto pp : divisors_of(world)) {
    const std::int32_t stage = world / pp;
    for (const auto tp : divisors_of(stage)) {
      for (const auto cp : divisors_of(stage / tp)) {
        sim::Layout dense;
        dense.tp = tp;
        dense.cp = cp;
        dense.dp = stage / tp / cp;
        dense.pp = pp;
        const std::int32_t copies_max = cuts == DpCuts::kShards ? 1 : dense.dp;
        for (const auto copies : divisors_of(copies_max)) {
          dense.dp_replicate = copies;
          add_expert_meshes(dense, stage, layouts);
        }
      }
    }
  }
}

}  // namespace

std::vector<sim::Layout> layouts_up_to(std::int32_t world_max, DpCuts cuts) {
  std::vector<sim::Layout> layouts;
  for (std::int32_t world = 1; world <= world_max; ++world) add_layouts_of(world, cuts, layouts);
  return layouts;
}

}  // namespace reprise::driver
