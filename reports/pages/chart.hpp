#pragma once
// Draws curves over a common axis.

#include <string>
#include <vector>

#include "reports/pages/picture.hpp"

namespace reprise::reports {

struct Curve {
  std::string name;
  std::string look;           ///< classes of the style sheet
  std::vector<Point> points;  ///< in order of x; a y that is not finite is marked at the upper edge
};

struct Chart {
  std::string title;
  std::string description;
  std::string x_name;
  std::string y_name;
  std::vector<Curve> curves;
};

/// Returns the chart as SVG; empty if no point is finite.
std::string draw(const Chart& chart);

/// Returns round numbers within [low, high], about as many as `count`.
std::vector<double> ticks_between(double low, double high, int count);

}  // namespace reprise::reports
