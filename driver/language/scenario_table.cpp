#include "driver/language/scenario_table.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "core/base/print.hpp"
#include "core/base/random.hpp"
#include "core/save/commit_protocol.hpp"
#include "core/save/phases.hpp"
#include "core/save/retention.hpp"
#include "reprise/error.hpp"
#include "sim/job/groups/layout.hpp"

namespace reprise::driver {
namespace {

constexpr std::int64_t kRowsMax = 1000;         // each row is read like a separate file
constexpr std::size_t kSampledFrom = 20000;     // enough for two axes with all rank orders
constexpr std::string_view kSample = "sample";  // names the sample, not an axis
constexpr std::string_view kSeed = "seed";
constexpr const char* kNext = ".next";

[[noreturn]] void refuse(const YAML::Node& at, const std::string& file, const std::string& why) {
  throw MistakeError({file, at.Mark().line, at.Mark().column, "each " + why});
}

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Replaces characters that are unsafe in a shell or a file name with '-'.
std::string plain(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool kept = is_name_letter(c) || c == '_' || c == '.' || c == '-' || c == '+';
    name += kept ? c : '-';
  }
  return name;
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns a value as part of a row's name: {tp: 2, order: dp-tp} is "tp2-order.dp-tp".
std::string label_of(const YAML::Node& value) {
  if (value.IsScalar()) return plain(value.Scalar());
  std::string label;
  if (value.IsMap()) {
    for (const auto& entry : value) {
      const std::string inner = label_of(entry.second);
      label += (label.empty() ? "" : "-") + plain(entry.first.Scalar());
      label += is_number(inner) ? inner : "." + inner;
    }
  } else {
    for (const auto& item : value) label += (label.empty() ? "" : "-") + label_of(item);
  }
  return label.empty() ? "none" : label;
}

void require_axis_name(const YAML::Node& key, const std::string& file) {
  const std::string& name = key.Scalar();
  const bool good = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return is_name_letter(c) || c == '_';
  });
  if (!good) refuse(key, file, "names an axis '" + name + "'; a name has letters, digits and '_'");
}

void require_value(const YAML::Node& value, const std::string& file) {
  if (value.IsNull()) refuse(value, file, "has an axis without a value");
  if (value.IsScalar() && value.Scalar().starts_with('$')) {
    refuse(value, file, "gives " + value.Scalar() + " as a value; a value is not another axis");
  }
}

using Values = std::vector<std::pair<std::string, YAML::Node>>;
using Nodes = std::vector<YAML::Node>;

// --- words that stand for lists ------------------------------------------------------------------

template <class Texts>
Nodes nodes_of(const Texts& texts) {
  Nodes nodes;
  for (const auto& text : texts) nodes.emplace_back(std::string(text));
  return nodes;
}

Nodes every_order() {
  std::vector<std::string_view> names(sim::kAxisNames.begin(), sim::kAxisNames.end());
  std::sort(names.begin(), names.end());
  std::vector<std::string> orders;
  do {
    orders.push_back(join(names, "-"));
  } while (std::next_permutation(names.begin(), names.end()));
  return nodes_of(orders);
}

Nodes every_rank(std::int32_t world) {
  std::vector<std::string> ranks;
  for (std::int32_t rank = 0; rank < world; ++rank) ranks.push_back(std::to_string(rank));
  return nodes_of(ranks);
}

constexpr std::array<std::string_view, 3> kMoments = {"before", "during", "after"};

/// Returns the values that `word` stands for on this axis; nothing if `word` is an ordinary value.
Nodes values_of_word(const std::string& axis, const std::string& word,
                     const std::function<std::int32_t()>& world) {
  if (word == "all_orders") return every_order();
  if (word == "all_ranks" || (word == "all" && axis == "rank")) return every_rank(world());
  if (word == "all_moments" || (word == "all" && axis == "moment")) return nodes_of(kMoments);
  if (word == "all_of_save") return nodes_of(phases_of_save());
  if (word == "all_of_load") return nodes_of(phases_of_load());
  if (word == "all_of_prepare") return nodes_of(kPrepareSteps);
  if (word == "all_of_commit") return nodes_of(kCommitSteps);
  if (word == "all_of_retention") return nodes_of(kRetentionSteps);
  return {};
}

Nodes values_of(const std::string& axis, const YAML::Node& value, const std::string& file,
                const std::function<std::int32_t()>& world) {
  Nodes values;
  if (value.IsScalar()) values = values_of_word(axis, value.Scalar(), world);
  if (value.IsSequence()) {
    for (const auto& item : value) values.push_back(item);
  }
  if (!values.empty()) return values;
  refuse(value, file,
         "needs a list of values for '" + axis +
             "', or a word for one: all_orders, all_ranks, all_moments, all_of_save, all_of_load, "
             "all_of_prepare, all_of_commit, all_of_retention; all, for the axes rank and moment");
}

// --- rows ----------------------------------------------------------------------------------------

/// For each of the values, adds a row: a copy of `row` with this value added.
void add_axis(const std::string& axis, const Nodes& values, const Values& row,
              const std::string& file, std::vector<Values>& rows) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    require_value(values[i], file);
    rows.push_back(row);
    rows.back().emplace_back(axis, values[i]);
    rows.back().emplace_back(axis + kNext, values[(i + 1) % values.size()]);
  }
}

/// Returns every combination of values; the last axis changes fastest.
std::vector<Values> product_of(const YAML::Node& axes, const std::string& file,
                               std::size_t rows_max, const WorldOf& world) {
  const YamlMap map(axes, file, "each");  // the constructor refuses repeated names
  std::vector<Values> rows(1);
  for (const auto& axis : axes) {
    const std::string& name = axis.first.Scalar();
    if (name == kSample || name == kSeed) continue;
    require_axis_name(axis.first, file);
    std::vector<Values> longer;
    for (const auto& row : rows) {
      const auto world_of_row = [&] {
        Bindings before{row, {}};
        return world(before);
      };
      add_axis(name, values_of(name, axis.second, file, world_of_row), row, file, longer);
      if (longer.size() > rows_max) {
        refuse(axes, file, "has more than " + std::to_string(rows_max) + " rows");
      }
    }
    rows = std::move(longer);
  }
  return rows;
}

/// Returns `count` of the rows, in their original order. The choice depends only on the seed.
std::vector<Values> sampled(std::vector<Values> rows, std::size_t count, std::uint64_t seed) {
  Stream random = Stream(seed).split("sample");
  std::set<std::size_t> chosen;
  while (chosen.size() < count) chosen.insert(random.below(rows.size()));
  std::vector<Values> sample;
  for (const auto i : chosen) sample.push_back(std::move(rows[i]));
  return sample;
}

std::vector<Values> combined_rows(const YAML::Node& each, const std::string& file,
                                  const WorldOf& world) {
  YamlMap map(each, file, "each");
  const auto count = map.integer_in(kSample, 1, kRowsMax);
  const auto seed = map.integer_in(kSeed, 0, INT64_MAX);
  if (seed && !count) map.fail(map.node(kSeed), "gives a seed but no sample");
  auto rows = product_of(each, file, count ? kSampledFrom : kRowsMax, world);
  if (!count) return rows;
  if (rows.size() <= static_cast<std::size_t>(*count)) {
    map.fail(map.node(kSample), "takes a sample of " + std::to_string(*count) + " of " +
                                    std::to_string(rows.size()) + " rows: that is all of them");
  }
  return sampled(std::move(rows), static_cast<std::size_t>(*count),
                 static_cast<std::uint64_t>(seed.value_or(1)));
}

std::vector<Values> listed_rows(const YAML::Node& list, const std::string& file) {
  std::vector<Values> rows;
  if (list.size() > static_cast<std::size_t>(kRowsMax)) {
    refuse(list, file, "has more than " + std::to_string(kRowsMax) + " rows");
  }
  for (const auto& item : list) {
    const std::vector<std::string> names = YamlMap(item, file, "a row of each").keys();
    if (!rows.empty()) {
      const auto first = YamlMap(*list.begin(), file, "each").keys();
      if (!std::is_permutation(names.begin(), names.end(), first.begin(), first.end())) {
        refuse(item, file, "has a row with other names than the first row's");
      }
    }
    Values row;
    for (const auto& cell : item) {
      require_axis_name(cell.first, file);
      require_value(cell.second, file);
      row.emplace_back(cell.first.Scalar(), cell.second);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::vector<TableRow> table_rows(const YAML::Node& each, const std::string& file,
                                 const WorldOf& world) {
  if (!each.IsMap() && !each.IsSequence()) {
    refuse(each, file, "needs a mapping {axis: [values]}, or a list of rows [{axis: value}]");
  }
  const auto values = each.IsMap() ? combined_rows(each, file, world) : listed_rows(each, file);
  std::vector<TableRow> rows;
  std::set<std::string> seen;
  for (const auto& row : values) {
    if (row.empty()) refuse(each, file, "names no axis");
    std::string name;
    for (const auto& [axis, value] : row) {
      if (axis.ends_with(kNext)) continue;
      name += (name.empty() ? "[" : ",") + axis + "=" + label_of(value);
    }
    name += "]";
    if (!seen.insert(name).second)
      refuse(row.front().second, file, "has the row " + name + " twice");
    rows.push_back({name, {row, {}}});
  }
  if (rows.empty()) refuse(each, file, "has no rows");
  return rows;
}

}  // namespace reprise::driver
