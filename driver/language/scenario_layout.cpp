#include "driver/language/scenario_layout.hpp"

#include <algorithm>
#include <set>

#include "core/base/print.hpp"
#include "reprise/error.hpp"
#include "sim/job/model/model.hpp"
#include "sim/job/optimizer/sharding.hpp"

namespace reprise::driver {
namespace {

/// The most that the ranks of a job may hold. A scenario keeps it in memory several times: for the
/// job, for the uninterrupted one, for its checkpoints.
constexpr std::uint64_t kStateBytesMax = std::uint64_t{4} << 30U;

void require_small(const sim::ModelSpec& model, const sim::Layout& layout, YamlMap& map) {
  const std::uint64_t bytes = sim::least_state_bytes(model, layout);
  if (bytes <= kStateBytesMax) return;
  map.fail(map.node("layout"), "has a job whose ranks hold at least " + human_bytes(bytes) +
                                   " of weights and optimizer state, but a scenario may have " +
                                   human_bytes(kStateBytesMax) + "; `reprise plan --model " +
                                   model.name + "` shows what a save of it costs");
}

}  // namespace

const Rows<sim::Layout>& layout_rows() {
  using sim::Layout;
  static const Rows<Layout> all = [] {
    Rows<Layout> rows = {row("order", &Layout::order, &YamlMap::text, Written::kAlways)};
    for (const auto& field : sim::kLayoutFields) {
      rows.push_back(row(field.name, field.size, Whole{1, kWorldMax}));
    }
    rows.push_back(row("stage_layers", &Layout::stage_layers, &YamlMap::integers));
    return rows;
  }();
  return all;
}

sim::Layout read_layout(YamlMap& map, const std::string& order, const std::string& model) {
  const YAML::Node node = map.required_node("layout");
  try {
    sim::Layout layout;
    if (node.IsScalar()) {
      layout = sim::parse_layout(node.Scalar());
      if (node.Scalar().find("order") == std::string::npos) layout.order = order;
    } else {
      const Mapping<sim::Layout> sizes{.rows = layout_rows(), .usual = {.order = order}};
      const auto read = [&] { layout = sizes(map, "layout").value(); };
      if (!map.attempt(read)) throw Unread();
    }
    sim::check(layout);
    if (!model.empty()) sim::check_fits(sim::model_named(model), layout);
    if (layout.world_size() > kWorldMax) map.fail(node, "has a layout with too many ranks");
    if (!model.empty()) require_small(sim::model_named(model), layout, map);
    return layout;
  } catch (const Error& error) {
    if (!error.place().file.empty()) throw;  // this error already names the line of its key
    map.fail(node, "has an impossible layout: " + error.message());
  }
}

std::string read_model(YamlMap& map) {
  std::string model = map.required("model");
  try {
    sim::model_named(model);
  } catch (const Error& error) {
    map.refuse(map.node("model"), "has an unknown model: " + error.message());
  }
  return model;
}

std::optional<sim::Sharding> read_sharding(YamlMap& map, std::string_view key) {
  const auto name = map.text(key);
  if (!name) return std::nullopt;
  const auto names = sim::sharding_names();
  if (std::find(names.begin(), names.end(), *name) == names.end()) {
    map.refuse(map.node(key),
               "has the unknown sharding '" + *name + "'; available: " + join(names, ", "));
  }
  return sim::sharding_named(*name);
}

std::vector<std::int32_t> read_ranks(YamlMap& map, std::string_view key) {
  std::vector<std::int32_t> ranks;
  std::set<std::int64_t> seen;
  for (const auto rank : map.integers(key)) {
    if (rank < 0 || rank >= kWorldMax || !seen.insert(rank).second) {
      map.fail(map.node(key), "needs distinct ranks from 0 to " + std::to_string(kWorldMax - 1) +
                                  " under '" + std::string(key) + "'");
    }
    ranks.push_back(static_cast<std::int32_t>(rank));
  }
  return ranks;
}

void require_place_for_each(std::size_t ranks, const sim::Layout& layout, YamlMap& map) {
  const auto places = static_cast<std::size_t>(layout.world_size());
  if (ranks == 0 || ranks == places) return;
  map.fail(map.node(map.has("ranks") ? "ranks" : "layout"),
           "has " + std::to_string(ranks) + " ranks for a layout of " + std::to_string(places) +
               "; name one for each under 'ranks'");
}

}  // namespace reprise::driver
