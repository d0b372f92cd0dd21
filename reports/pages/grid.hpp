#pragma once
// Draws a table of coloured cells.

#include <cstddef>
#include <string>
#include <vector>

namespace reprise::reports {

struct GridCell {
  std::string text = {};  ///< written into the cell
  double strength = 0;    ///< from 0, no colour, to 1
  std::string look = {};  ///< classes of the style sheet; empty: nothing is drawn
  std::string hint = {};  ///< shown if a reader points at the cell
};

struct Grid {
  std::string title;
  std::string description;
  std::vector<std::string> rows;
  std::vector<std::string> columns;
  std::vector<std::vector<GridCell>> cells;  ///< one list per row, one cell per column
  double cell_width = 15;
  std::size_t name_max = 40;  ///< longer names are cut, in letters
  bool upright = true;        ///< the names of columns are written upwards
};

/// Returns the grid as SVG; empty if it has no cells.
std::string draw(const Grid& grid);

}  // namespace reprise::reports
