#include "driver/language/catalogue.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "core/base/hash.hpp"
#include "core/base/print.hpp"
#include "driver/language/name_expression.hpp"
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
  std::error_code unknown;  // what is wrong with a path is told when it is read
  if (!fs::is_directory(path, unknown)) {
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

/// Returns the rows of the path that have the cells named there.
std::vector<Scenario> rows_of(const FileAndRows& wanted, std::vector<Scenario> all) {
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
          (cells.empty() ? "; the file has no 'each'" : "; available: " + join(cells, ", ")),
      {.file = wanted.file});
}

/// Reads a file, or adds it to the unreadable ones.
std::vector<Scenario> read_file(const std::string& file, const std::string& trainers,
                                Catalogue& catalogue) {
  UnreadableFile unreadable{.file = file};
  Mistakes mistakes;
  try {
    unreadable.text = read_yaml_text(file);
    auto scenarios = parse_scenarios(unreadable.text, file, trainers, mistakes);
    if (mistakes.empty()) return scenarios;
  } catch (const Error& error) {
    mistakes.add_sense(error, file);
  }
  unreadable.mistakes = mistakes.sorted();
  auto& known = catalogue.unreadable;  // a file may be named twice, with different rows
  const bool again = !known.empty() && known.back().file == file;
  if (!again) known.push_back(std::move(unreadable));
  return {};
}

/// Removes scenarios. Throws USAGE with the reason if none is left, unless some are not known
/// because of mistakes.
template <class Leaves, class Why>
void leave_out(Catalogue& catalogue, Leaves leaves, Why why) {
  std::erase_if(catalogue.scenarios, leaves);
  if (!catalogue.scenarios.empty() || !catalogue.unreadable.empty()) return;
  throw Error(Code::kUsage, why());
}

bool has_tag(const Scenario& scenario, const std::string& tag) {
  return std::find(scenario.tags.begin(), scenario.tags.end(), tag) != scenario.tags.end();
}

std::string no_tag(const std::string& tag, const Catalogue& catalogue) {
  std::vector<std::string> tags;
  for (const auto& [name, count] : catalogue.tags) tags.push_back(name);
  return "no scenario has the tag '" + tag + "'" +
         (tags.empty() ? "; no scenario has tags" : "; the tags are: " + join(tags, ", "));
}

void select_by_tags(const Selection& selection, Catalogue& catalogue) {
  for (const auto& tag : selection.not_tags) {
    if (!catalogue.tags.contains(tag) && catalogue.unreadable.empty()) {
      throw Error(Code::kUsage, "--not-tag: " + no_tag(tag, catalogue));
    }
    leave_out(
        catalogue, [&tag](const Scenario& scenario) { return has_tag(scenario, tag); },
        [&tag] {
          return "--not-tag " + tag + " leaves out everything: every scenario has that tag";
        });
  }
  if (selection.tag.empty()) return;
  leave_out(
      catalogue,
      [&selection](const Scenario& scenario) { return !has_tag(scenario, selection.tag); },
      [&] { return no_tag(selection.tag, catalogue); });
}

/// If `programs` is true, keeps only the scenarios of trainers; otherwise keeps all others.
void select_kind(bool programs, Catalogue& catalogue) {
  leave_out(
      catalogue,
      [programs](const Scenario& scenario) { return scenario.program.has_value() != programs; },
      [programs] {
        return programs ? "none of these scenarios has a trainer; only scenarios with trainers run "
                          "on the lane program"
                        : "each of these scenarios has a trainer; they run with --lane program";
      });
}

/// Refuses scenarios with equal names, because reports, kept checkpoints and courses identify
/// scenarios by name.
void refuse_equal_names(const std::vector<Scenario>& scenarios) {
  std::map<std::string, std::string> files;
  for (const auto& scenario : scenarios) {
    const auto [known, added] = files.emplace(scenario.name, scenario.file);
    if (added) continue;
    throw Error(Code::kUsage,
                "two scenarios have the name " + scenario.name + ": " + known->second + " and " +
                    scenario.file + "; give one of them its own 'name:', or run them separately",
                {.file = scenario.file});
  }
}

/// Throws USAGE if there is less than one scenario for each shard.
void select_shard(const Selection& selection, Catalogue& catalogue) {
  auto& scenarios = catalogue.scenarios;
  catalogue.whole = scenarios.size();
  if (selection.shard > scenarios.size() && !scenarios.empty()) {
    throw Error(Code::kUsage, "shard " + std::to_string(selection.shard) + " of " +
                                  std::to_string(selection.shards) + " is empty: there are only " +
                                  std::to_string(scenarios.size()) +
                                  " scenarios; use fewer shards");
  }
  std::size_t index = 0;
  std::erase_if(scenarios, [&](const Scenario& /*scenario*/) {
    return index++ % selection.shards != selection.shard - 1;
  });
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

std::string UnreadableFile::reason() const {
  if (mistakes.empty()) return "it can't be read";
  const Mistake& first = mistakes.front();
  const std::size_t more = mistakes.size() - 1;
  return first.place() + ": " + first.message +
         (more == 0 ? "" : " (and " + std::to_string(more) + " more)");
}

std::string shown(const UnreadableFile& file) {
  std::string text;
  for (const auto& mistake : file.mistakes) {
    text += shown(mistake, mistake.file == file.file ? std::string_view(file.text) : "");
  }
  return text;
}

Catalogue read_files(const Selection& selection) {
  Catalogue catalogue;
  std::optional<NameExpression> expression;
  if (!selection.names.empty()) expression.emplace(selection.names);
  std::set<std::string> files;
  std::vector<std::string> names;  // of all scenarios of this kind, selected or not
  for (const auto& path : find_scenarios(selection.paths)) {
    const FileAndRows wanted = split_rows(path);
    files.insert(wanted.file);
    auto all = read_file(wanted.file, selection.trainers, catalogue);
    if (all.empty()) continue;
    auto rows = rows_of(wanted, std::move(all));
    for (const auto& row : rows) {
      if (row.program.has_value() != selection.programs) continue;
      for (const auto& tag : row.tags) ++catalogue.tags[tag];
      names.push_back(row.name);
    }
    std::erase_if(rows, [&expression](const Scenario& row) {
      return expression && !expression->holds_for(row.name);
    });
    keep_some(selection, rows);
    std::move(rows.begin(), rows.end(), std::back_inserter(catalogue.scenarios));
  }
  catalogue.files = files.size();
  refuse_equal_names(catalogue.scenarios);
  if (expression) {
    leave_out(
        catalogue, [](const Scenario& /*scenario*/) { return false; },
        [&] { return expression->explain_no_match(names); });
  }
  select_kind(selection.programs, catalogue);
  select_by_tags(selection, catalogue);
  select_shard(selection, catalogue);
  return catalogue;
}

CatalogueError::CatalogueError(Catalogue catalogue)
    : MistakeError(catalogue.unreadable.front().mistakes.front()),
      catalogue_(std::make_shared<const Catalogue>(std::move(catalogue))) {}

std::vector<Scenario> read_catalogue(const Selection& selection) {
  Catalogue catalogue = read_files(selection);
  if (catalogue.unreadable.empty()) return std::move(catalogue.scenarios);
  throw CatalogueError(std::move(catalogue));
}

}  // namespace reprise::driver
