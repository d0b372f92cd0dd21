#include "driver/language/catalogue.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "driver/yaml/yaml_map.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCatalogue = "scenarios";
constexpr std::string_view kFirst = "regress";

bool comes_first(const fs::path& file) {
  const fs::path folder = file.parent_path();
  return std::find(folder.begin(), folder.end(), kFirst) != folder.end();
}

void add_files(const std::string& path, std::vector<std::string>& files) {
  if (!fs::is_directory(path)) {
    files.push_back(path);
    return;
  }
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
}

/// Returns the cells of a row's name, such as "[a=1,b=2]".
std::set<std::string> cells_of(std::string_view row) {
  std::set<std::string> cells;
  if (row.size() < 2) return cells;
  std::string_view rest = row.substr(1, row.size() - 2);
  while (!rest.empty()) {
    const auto end = std::min(rest.find(','), rest.size());
    cells.emplace(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return cells;
}

bool has_cells(const Scenario& scenario, const std::vector<std::string>& wanted) {
  const auto cells = cells_of(scenario.row);
  return std::all_of(wanted.begin(), wanted.end(),
                     [&cells](const std::string& cell) { return cells.contains(cell); });
}

/// Keeps at most rows_max rows, in their old order. The choice depends on the rows' names and on
/// the seed. Adding one row to the table drops at most one other row from the choice.
void keep_some(const Selection& selection, std::vector<Scenario>& rows) {
  if (selection.rows_max == 0 || rows.size() <= selection.rows_max) return;
  const auto draw = [&selection](const Scenario& scenario) {
    return mix64(selection.seed, hash_of(std::string_view(scenario.name)));
  };
  std::vector<std::uint64_t> draws;
  for (const auto& row : rows) draws.push_back(draw(row));
  std::sort(draws.begin(), draws.end());
  const std::uint64_t last = draws[selection.rows_max - 1];
  std::erase_if(rows, [&](const Scenario& row) { return draw(row) > last; });
}

/// Returns the selected rows of one path.
std::vector<Scenario> rows_of(const std::string& path, const std::string& trainers) {
  const FileAndRows wanted = split_rows(path);
  std::vector<Scenario> all = parse_scenarios(read_yaml_text(wanted.file), wanted.file, trainers);
  std::vector<Scenario> kept;
  std::set<std::string> cells;
  for (auto& scenario : all) {
    const auto own = cells_of(scenario.row);
    cells.insert(own.begin(), own.end());
    if (has_cells(scenario, wanted.cells)) kept.push_back(std::move(scenario));
  }
  if (!kept.empty()) return kept;
  throw Error(
      Code::kUsage,
      "no row has " + join(wanted.cells, " and ") +
          (cells.empty() ? "; the file has no 'each'" : "; there are: " + join(cells, ", ")),
      {.file = wanted.file});
}

void keep_tagged(const std::string& tag, std::vector<Scenario>& scenarios) {
  std::set<std::string> tags;
  for (const auto& scenario : scenarios) tags.insert(scenario.tags.begin(), scenario.tags.end());
  std::erase_if(scenarios, [&tag](const Scenario& scenario) {
    return std::find(scenario.tags.begin(), scenario.tags.end(), tag) == scenario.tags.end();
  });
  if (!scenarios.empty()) return;
  throw Error(Code::kUsage,
              "no scenario has the tag '" + tag + "'" +
                  (tags.empty() ? "; none has any" : "; the tags are: " + join(tags, ", ")));
}

/// If `programs` is true, keeps only the scenarios of trainers; otherwise keeps all others.
void keep_kind(bool programs, std::vector<Scenario>& scenarios) {
  std::erase_if(scenarios, [programs](const Scenario& scenario) {
    return scenario.program.has_value() != programs;
  });
  if (!scenarios.empty()) return;
  throw Error(Code::kUsage, programs ? "none of these scenarios has a trainer; only those run on "
                                       "the lane program"
                                     : "each of these scenarios has a trainer; they run with "
                                       "--lane program");
}

/// Refuses scenarios with equal names, because reports, kept checkpoints and courses identify
/// scenarios by name.
void refuse_equal_names(const std::vector<Scenario>& scenarios) {
  std::map<std::string, std::string> files;
  for (const auto& scenario : scenarios) {
    const auto [known, added] = files.emplace(scenario.name, scenario.file);
    if (added) continue;
    throw Error(Code::kUsage,
                "two scenarios are called " + scenario.name + ": " + known->second + " and " +
                    scenario.file + "; give one a 'name:' of its own, or run them apart",
                {.file = scenario.file});
  }
}

}  // namespace

std::string name_of_file(std::string_view file) {
  const fs::path path = fs::path(file).lexically_normal();
  fs::path below;
  bool found = false;
  for (const auto& part : path) {
    if (part == kCatalogue) {
      found = true;
      below.clear();
    } else {
      below /= part;
    }
  }
  if (!found || below.empty()) return path.stem().string();
  return below.replace_extension().generic_string();
}

FileAndRows split_rows(std::string_view path) {
  const auto open = path.rfind('[');
  if (open == std::string_view::npos || !path.ends_with(']') || fs::exists(fs::path(path))) {
    return {std::string(path), {}};
  }
  const auto cells = cells_of(path.substr(open));
  return {std::string(path.substr(0, open)), {cells.begin(), cells.end()}};
}

std::vector<std::string> find_scenarios(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const auto& path : paths) add_files(path, files);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  std::stable_partition(files.begin(), files.end(), comes_first);
  if (files.empty()) {
    throw Error(Code::kUsage, "no scenario (*.yaml) under " + join(paths, ", "));
  }
  return files;
}

std::vector<Scenario> read_catalogue(const Selection& selection) {
  std::vector<Scenario> scenarios;
  for (const auto& path : find_scenarios(selection.paths)) {
    auto rows = rows_of(path, selection.trainers);
    keep_some(selection, rows);
    scenarios.insert(scenarios.end(), std::make_move_iterator(rows.begin()),
                     std::make_move_iterator(rows.end()));
  }
  refuse_equal_names(scenarios);
  keep_kind(selection.programs, scenarios);
  if (!selection.tag.empty()) keep_tagged(selection.tag, scenarios);
  return scenarios;
}

}  // namespace reprise::driver
