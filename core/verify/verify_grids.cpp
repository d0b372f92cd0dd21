#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "core/base/print.hpp"
#include "core/state/state_dict.hpp"
#include "core/verify/verify_objects.hpp"

namespace reprise {
namespace {

constexpr std::size_t kGridsNamed = 8;  // limit on the listed grids or missing coordinates

struct Shards {
  std::vector<Dims> grids;        ///< distinct grids, up to kGridsNamed
  std::vector<Dims> coordinates;  ///< coordinates of the shards, in key order
};

std::map<std::string, Shards> shards_by_key(const Catalog& catalog) {
  std::map<std::string, Shards> all;
  for (const auto& object : catalog.objects) {
    const auto parsed = parse_object_key(object.key);
    if (!parsed) continue;
    Shards& shards = all[parsed->key];
    const auto known = std::find(shards.grids.begin(), shards.grids.end(), parsed->grid);
    if (known == shards.grids.end() && shards.grids.size() < kGridsNamed) {
      shards.grids.push_back(parsed->grid);
    }
    shards.coordinates.push_back(parsed->coordinate);
  }
  return all;
}

/// Returns the number of cells of a grid, but at most the largest integer. The extents come from a
/// file, so they can have any value.
std::int64_t cells_of(const Dims& grid) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::int64_t cells = 1;
  for (const auto extent : grid) {
    if (extent == 0) return 0;
    if (cells > kMost / extent) return kMost;
    cells *= extent;
  }
  return cells;
}

bool within(const Dims& coordinate, const Dims& grid) {
  for (std::size_t d = 0; d < grid.size(); ++d) {
    if (coordinate[d] >= grid[d]) return false;
  }
  return true;
}

/// Moves `coordinate` to the next cell in row-major order.
void step(Dims& coordinate, const Dims& grid) {
  for (std::size_t d = grid.size(); d-- > 0;) {
    if (++coordinate[d] < grid[d]) return;
    coordinate[d] = 0;
  }
}

/// Returns the first few coordinates without a shard. Examines only a few more cells than there are
/// shards.
std::vector<Dims> missing_from(const Shards& shards, const Dims& grid, std::int64_t cells) {
  const std::set<Dims> present(shards.coordinates.begin(), shards.coordinates.end());
  const auto most = std::min(cells, static_cast<std::int64_t>(present.size() + kGridsNamed));
  std::vector<Dims> missing;
  Dims at = Dims::filled(grid.size(), 0);
  for (std::int64_t i = 0; i < most && missing.size() < kGridsNamed; ++i, step(at, grid)) {
    if (!present.contains(at)) missing.push_back(at);
  }
  return missing;
}

std::string words_for(const std::vector<Dims>& missing, std::int64_t count) {
  std::string text = join(missing, " ");
  if (static_cast<std::int64_t>(missing.size()) < count) text += " ...";
  return text;
}

void check_key(const std::string& key, const Shards& shards, Findings& findings) {
  if (shards.grids.size() > 1) {
    findings.push_back(
        {Severity::kError, Code::kLayoutMismatch,
         "shards of one object claim different grids: " + join(shards.grids, " and "), key});
    return;
  }
  const Dims& grid = shards.grids.front();
  const bool unknown = std::any_of(grid.begin(), grid.end(), [](auto e) { return e < 0; });
  if (unknown) {
    findings.push_back({Severity::kNote, Code::kCoverageGap,
                        "the last dimension of its grid is not recorded (as in older files), so a "
                        "missing shard cannot be detected",
                        key});
    return;
  }
  for (const Dims& coordinate : shards.coordinates) {
    if (within(coordinate, grid)) continue;
    findings.push_back(
        {Severity::kError, Code::kExtentMismatch,
         "shard " + to_string(coordinate) + " lies outside its grid " + to_string(grid),
         object_key(key, coordinate, grid)});
    return;
  }
  const std::int64_t cells = cells_of(grid);
  const auto present = static_cast<std::int64_t>(shards.coordinates.size());
  if (present >= cells) return;
  findings.push_back({Severity::kError, Code::kCoverageGap,
                      with_commas(static_cast<std::uint64_t>(cells - present)) + " of " +
                          with_commas(static_cast<std::uint64_t>(cells)) +
                          " shards are missing; grid " + to_string(grid) + ", missing " +
                          words_for(missing_from(shards, grid, cells), cells - present),
                      key});
}

}  // namespace

Findings check_grids(const Catalog& catalog) {
  Findings findings;
  for (const auto& [key, shards] : shards_by_key(catalog)) check_key(key, shards, findings);
  return findings;
}

}  // namespace reprise
