#include "driver/random/random_modules.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "driver/random/draw.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

using sim::Layout;
using sim::ModuleConfig;
using Modules = std::vector<ModuleConfig>;
using Sizes = std::vector<std::int32_t>;

constexpr std::array<std::string_view, 2> kLanguages = {"language-tiny", "hybrid-tiny"};
constexpr std::string_view kLargeLanguage = "language-moe";
constexpr double kOverflowing = 65536;

enum class Stand : std::uint8_t { kDisjoint, kColocated };

Stand stand_of(const Modules& modules) {
  const auto& first = modules[0].ranks;
  const bool shared = std::count(first.begin(), first.end(), modules[1].ranks.front()) > 0;
  return shared ? Stand::kColocated : Stand::kDisjoint;
}

bool can_be(const Layout& layout) {
  try {
    sim::check(layout);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Returns `layout` with dp changed so that it has `size` ranks. State in buckets can be loaded
/// under the new layout. Returns nothing if no dp gives that size.
std::optional<Layout> with_other_dp(Layout layout, std::int32_t size) {
  const std::int32_t parts = layout.world_size() / layout.dp;
  if (size % parts != 0) return std::nullopt;
  layout.dp = size / parts;
  layout.dp_replicate = 1;
  if (layout.order.find("dp") == std::string::npos) layout.order = Layout{}.order;
  if (!can_be(layout)) return std::nullopt;
  return layout;
}

bool in_buckets(const ModuleConfig& module) {
  return module.optimizer_sharding == sim::Sharding::kDpReshardable;
}

/// Returns the numbers of ranks that the module may get, up to `most`. A module that was saved in
/// buckets can change only its dp. A new module may have any number of ranks.
Sizes possible_sizes(const ModuleConfig& module, std::int32_t most) {
  const bool any = module.ranks.empty() || !in_buckets(module);
  Sizes sizes;
  for (std::int32_t size = 1; size <= most; ++size) {
    if (any || with_other_dp(module.layout, size)) sizes.push_back(size);
  }
  return sizes;
}

/// Draws one size per module, with a sum of at most `world`; empty if that is impossible.
Sizes disjoint_sizes(Stream& random, const Modules& modules, std::int32_t world) {
  std::int32_t needed = 0;
  for (const auto& module : modules) {
    const Sizes sizes = possible_sizes(module, world);
    if (sizes.empty()) return {};
    needed += sizes.front();
  }
  Sizes dealt;
  for (const auto& module : modules) {
    const std::int32_t least = possible_sizes(module, world).front();
    const std::int32_t spare = world - needed;
    if (spare < 0) return {};
    dealt.push_back(one_of(random, possible_sizes(module, least + spare)));
    needed += dealt.back() - least;
  }
  return dealt;
}

/// Draws one size for all modules and returns it for each of them; empty if no size suits all
/// modules.
Sizes colocated_sizes(Stream& random, const Modules& modules, std::int32_t world) {
  Sizes shared = possible_sizes(modules.front(), world);
  for (const auto& module : modules) {
    const Sizes own = possible_sizes(module, world);
    std::erase_if(
        shared, [&own](auto size) { return std::find(own.begin(), own.end(), size) == own.end(); });
  }
  if (shared.empty()) return {};
  return Sizes(modules.size(), one_of(random, shared));
}

void lay_out(Stream& random, std::int32_t size, ModuleConfig& module) {
  const bool known = !module.ranks.empty();
  if (known && in_buckets(module)) {
    module.layout = with_other_dp(module.layout, size).value();
  } else if (!known || size != module.layout.world_size() || !chance(random, 3)) {
    module.layout = random_layout(random, module.model, size);
  }
}

/// Returns `count` ranks in ascending order, or in one case of three in random order.
std::vector<GlobalRank> random_ranks(Stream& random, std::int32_t count) {
  std::vector<GlobalRank> ranks;
  for (std::int32_t rank = 0; rank < count; ++rank) ranks.push_back({rank});
  if (chance(random, 3)) shuffle(random, ranks);
  return ranks;
}

void deal_ranks(Stream& random, Stand stand, Modules& modules) {
  std::int32_t all = 0;
  for (const auto& module : modules) all += module.layout.world_size();
  const auto ranks = random_ranks(random, all);
  auto next = ranks.begin();
  for (auto& module : modules) {
    const std::int32_t size = module.layout.world_size();
    if (stand == Stand::kColocated) {
      module.ranks = random_ranks(random, size);
    } else {
      module.ranks.assign(next, next + size);
      next += size;
    }
  }
}

/// Draws sizes, layouts and ranks. Returns false if the modules do not fit into the world.
bool place(Stream& random, Stand stand, std::int32_t world, Modules& modules) {
  const Sizes sizes = stand == Stand::kDisjoint ? disjoint_sizes(random, modules, world)
                                                : colocated_sizes(random, modules, world);
  if (sizes.empty()) return false;
  for (std::size_t m = 0; m < modules.size(); ++m) lay_out(random, sizes[m], modules[m]);
  deal_ranks(random, stand, modules);
  return true;
}

ModuleConfig random_module(Stream& random, std::string name, std::string_view model) {
  ModuleConfig module{.name = std::move(name), .model = std::string(model)};
  module.optimizer_sharding = random_sharding(random);
  if (chance(random, 4)) module.loss_scale.scale = kOverflowing;
  module.loss_scale.growth_interval = number(random, 1, 3);
  return module;
}

}  // namespace

Modules random_modules(Stream& random, const CaseLimits& limits) {
  Modules modules;
  const std::uint64_t encoders = random.below(3);  // 0: vision only, 1: audio only, 2: both
  if (encoders != 1) modules.push_back(random_module(random, "vision", "vision-tiny"));
  if (encoders != 0) modules.push_back(random_module(random, "audio", "audio-tiny"));
  for (auto& module : modules) module.frozen = chance(random, 8);
  const bool large = chance(random, 12);
  modules.push_back(
      random_module(random, "language", large ? kLargeLanguage : one_of(random, kLanguages)));
  shuffle(random, modules);
  const Stand stand = chance(random, 3) ? Stand::kColocated : Stand::kDisjoint;
  const auto least = static_cast<std::int32_t>(modules.size());
  const std::int32_t world =
      std::min(limits.world_max, std::max(least, random_world(random, limits)));
  if (!place(random, stand, world, modules)) place(random, Stand::kColocated, world, modules);
  return modules;
}

Modules changed_modules(Stream& random, Modules before, const CaseLimits& limits) {
  if (chance(random, 8)) return before;
  const Stand stood = stand_of(before);
  const Stand other = stood == Stand::kDisjoint ? Stand::kColocated : Stand::kDisjoint;
  const Stand stand = chance(random, 3) ? other : stood;
  Modules modules = before;
  if (chance(random, 3)) shuffle(random, modules);
  const std::int32_t world = chance(random, 2) ? random_world(random, limits) : limits.world_max;
  if (!place(random, stand, world, modules) && !place(random, stood, limits.world_max, modules)) {
    return before;
  }
  for (auto& module : modules) {
    if (chance(random, 2)) module.optimizer_sharding = random_sharding(random);
  }
  return modules;
}

}  // namespace reprise::driver
