#include "reports/pages/chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reprise::reports {
namespace {

//      left                right
//        |  curve names       |
//   top -+--------------------+
//        |                    |
// bottom-+--------------------+
//           numbers, x_name
constexpr double kWidth = 360;
constexpr double kHeight = 210;
constexpr double kLeft = 58;
constexpr double kRight = 350;
constexpr double kTop = 34;
constexpr double kBottom = 172;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void cover(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// Returns the part of the range that lies below the value, from 0 to 1.
  double part(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

class Plot {
 public:
  explicit Plot(const Chart& chart) : chart_(chart), picture_(chart.title, chart.description) {
    for (const auto& curve : chart.curves) {
      for (const auto& point : curve.points) {
        if (!std::isfinite(point.y)) continue;
        x_.cover(point.x);
        y_.cover(point.y);
      }
    }
  }

  std::string svg() {
    if (x_.low > x_.high) return "";
    draw_axes();
    double left = kLeft;
    for (const auto& curve : chart_.curves) {
      draw_curve(curve);
      picture_.line({left, 14}, {left + 22, 14}, curve.look);
      picture_.dot({left + 11, 14}, curve.look);
      picture_.text({left + 27, 18}, curve.name);
      left += 45 + width_of(curve.name);
    }
    return picture_.svg(kWidth, kHeight);
  }

 private:
  Point place(Point point) const {
    const double y = std::isfinite(point.y) ? kBottom - y_.part(point.y) * (kBottom - kTop) : kTop;
    return {kLeft + x_.part(point.x) * (kRight - kLeft), y};
  }

  void draw_axes() {
    for (const double tick : ticks_between(y_.low, y_.high, 4)) {
      const double y = place({x_.low, tick}).y;
      picture_.line({kLeft, y}, {kRight, y}, "grid");
      picture_.text({kLeft - 6, y + 4}, brief(tick), "end");
    }
    for (const double tick : ticks_between(x_.low, x_.high, 5)) {
      const double x = place({tick, y_.low}).x;
      picture_.line({x, kBottom}, {x, kBottom + 4}, "axis");
      picture_.text({x, kBottom + 17}, brief(tick), "middle");
    }
    picture_.path({{kLeft, kTop}, {kLeft, kBottom}, {kRight, kBottom}}, "axis");
    picture_.text({(kLeft + kRight) / 2, kHeight - 5}, chart_.x_name, "middle quiet");
    picture_.upright({11, kBottom}, chart_.y_name);
  }

  void draw_curve(const Curve& curve) {
    std::vector<Point> unbroken;
    const auto finish = [&] {
      if (unbroken.size() > 1) picture_.path(unbroken, curve.look);
      unbroken.clear();
    };
    for (const auto& point : curve.points) {
      const bool finite = std::isfinite(point.y);
      if (!finite) finish();
      if (finite) unbroken.push_back(place(point));
      if (curve.points.size() > 60 && finite) continue;
      picture_.dot(place(point), curve.look + (finite ? "" : " lost"),
                   curve.name + " at " + shortest(point.x) + ": " + shortest(point.y));
    }
    finish();
  }

  const Chart& chart_;
  Picture picture_;
  Range x_;
  Range y_;
};

}  // namespace

std::vector<double> ticks_between(double low, double high, int count) {
  if (!(high > low)) return {low};
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power * 10;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (power * factor >= rough) step = power * factor;
  }
  // Counts steps instead of adding them up, so the loop ends even if a step is lost in rounding.
  std::vector<double> ticks;
  const double first = std::ceil(low / step);
  for (int i = 0; i <= 2 * count; ++i) {
    const double tick = (first + i) * step;
    if (tick > high) break;
    ticks.push_back(std::abs(tick) < step / 2 ? 0 : tick);
  }
  return ticks.empty() ? std::vector<double>{low} : ticks;
}

std::string draw(const Chart& chart) { return Plot(chart).svg(); }

}  // namespace reprise::reports
