#include "scenarios/driver/scenario_table.hpp"

#include <algorithm>
#include <set>

#include "core/base/error.hpp"

namespace reprise::driver {
namespace {

constexpr std::size_t kRowsMax = 1000;  // each is read like a file of its own

[[noreturn]] void refuse(const YAML::Node& at, const std::string& file, const std::string& why) {
  const int line = at.Mark().line;
  throw Error(Code::kUsage, "each " + why,
              {.file = line >= 0 ? file + ":" + std::to_string(line + 1) : file});
}

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Letters that a shell and a file system leave alone.
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

/// A value as it stands in a row's name: {tp: 2, order: dp-tp} is "tp2-order.dp-tp".
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

/// Every combination; the last axis changes fastest.
std::vector<Values> product_of(const YAML::Node& axes, const std::string& file) {
  const YamlMap map(axes, file, "each");  // refuses repeated names
  std::vector<Values> rows(1);
  for (const auto& axis : axes) {
    require_axis_name(axis.first, file);
    if (!axis.second.IsSequence() || axis.second.size() == 0) {
      refuse(axis.second, file, "wants a list of values for '" + axis.first.Scalar() + "'");
    }
    if (rows.size() * axis.second.size() > kRowsMax) {
      refuse(axes, file, "has more than " + std::to_string(kRowsMax) + " rows");
    }
    std::vector<Values> longer;
    for (const auto& row : rows) {
      for (const auto& value : axis.second) {
        require_value(value, file);
        longer.push_back(row);
        longer.back().emplace_back(axis.first.Scalar(), value);
      }
    }
    rows = std::move(longer);
  }
  return rows;
}

std::vector<Values> listed_rows(const YAML::Node& list, const std::string& file) {
  std::vector<Values> rows;
  if (list.size() > kRowsMax) {
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

std::vector<TableRow> table_rows(const YAML::Node& each, const std::string& file) {
  if (!each.IsMap() && !each.IsSequence()) {
    refuse(each, file, "wants a mapping {axis: [values]}, or a list of rows [{axis: value}]");
  }
  const auto values = each.IsMap() ? product_of(each, file) : listed_rows(each, file);
  std::vector<TableRow> rows;
  std::set<std::string> seen;
  for (const auto& row : values) {
    if (row.empty()) refuse(each, file, "names no axis");
    std::string name;
    for (const auto& [axis, value] : row) {
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
