#include "reports/pages/grid.hpp"

#include <algorithm>

#include "reports/pages/escape.hpp"
#include "reports/pages/picture.hpp"

namespace reprise::reports {
namespace {

constexpr double kRowHeight = 16;

/// Returns the room that the longest name needs, in pixels.
double room_for(const std::vector<std::string>& names, std::size_t name_max) {
  double longest = 0;
  for (const auto& name : names) longest = std::max(longest, width_of(clipped(name, name_max)));
  return longest + 10;
}

}  // namespace

std::string draw(const Grid& grid) {
  if (grid.rows.empty() || grid.columns.empty()) return "";
  const double left = room_for(grid.rows, grid.name_max);
  const double top = grid.upright ? room_for(grid.columns, grid.name_max) : 24;
  Picture picture(grid.title, grid.description);
  const auto x_of = [&](std::size_t c) { return left + grid.cell_width * static_cast<double>(c); };
  for (std::size_t c = 0; c < grid.columns.size(); ++c) {
    const std::string name = clipped(grid.columns[c], grid.name_max);
    const double middle = x_of(c) + grid.cell_width / 2;
    if (grid.upright) picture.upright({middle + 4, top - 6}, name);
    if (!grid.upright) picture.text({middle, top - 8}, name, "middle");
  }
  for (std::size_t r = 0; r < grid.rows.size(); ++r) {
    const double y = top + kRowHeight * static_cast<double>(r);
    picture.text({left - 6, y + 12}, clipped(grid.rows[r], grid.name_max), "end");
    for (std::size_t c = 0; c < grid.columns.size(); ++c) {
      const GridCell& cell = grid.cells[r][c];
      if (cell.look.empty()) continue;
      const Picture::Box box{{x_of(c) + 1, y + 1}, grid.cell_width - 2, kRowHeight - 2};
      // Even the weakest cell must be told from an empty one.
      const double opacity = cell.strength > 0 ? 0.2 + 0.6 * cell.strength : 0;
      picture.box(box, cell.look, opacity, cell.hint);
      if (cell.text.empty()) continue;
      picture.text({x_of(c) + grid.cell_width / 2, y + 12}, cell.text, "middle over");
    }
  }
  return picture.svg(x_of(grid.columns.size()) + 8,
                     top + kRowHeight * static_cast<double>(grid.rows.size()) + 4);
}

}  // namespace reprise::reports
