#pragma once
// A canvas for SVG. Colours come from the classes of the page's style sheet, so a picture fits
// light and dark pages.

#include <string>
#include <string_view>
#include <vector>

namespace reprise::reports {

struct Point {
  double x = 0;
  double y = 0;
};

/// Returns the number in the shortest form that reads back as the same number; "nan" or "inf" if it
/// is not finite.
std::string shortest(double value);
/// Returns the number with at most seven significant digits.
std::string brief(double value);
/// Returns the number with that many digits after the point.
std::string fixed(double value, int digits);

/// Returns about how wide a text is in a picture, in pixels. Fonts differ, so it is a little more.
double width_of(std::string_view text);

class Picture {
 public:
  struct Box {
    Point at;  ///< upper left corner
    double width = 0;
    double height = 0;
  };

  /// `title` and `description` are the text alternatives of the picture.
  Picture(std::string_view title, std::string_view description);

  /// Draws a box. `look` names classes of the style sheet. `opacity` is from 0 to 1. `hint` is
  /// shown if a reader points at the box.
  void box(Box box, std::string_view look, double opacity = 1, std::string_view hint = "");
  void line(Point from, Point to, std::string_view look);
  /// Draws a line through all points.
  void path(const std::vector<Point>& points, std::string_view look);
  /// Draws a filled shape with these corners.
  void shape(const std::vector<Point>& corners, std::string_view look, std::string_view hint = "");
  void dot(Point at, std::string_view look, std::string_view hint = "");
  /// Writes text that starts at the point; the classes `end` and `middle` make it end there, or
  /// stand in its middle.
  void text(Point at, std::string_view words, std::string_view look = "");
  /// Writes text upwards from the point.
  void upright(Point at, std::string_view words);

  /// Returns the picture as an SVG element of that size, in pixels.
  std::string svg(double width, double height) const;

 private:
  void end_shape(std::string_view name, std::string_view hint);

  std::string title_;
  std::string description_;
  std::string shapes_;
};

/// Returns a figure with the picture and a caption, which is text and not yet HTML. A picture that
/// is wider than the page is scrolled inside the figure.
std::string figure(const std::string& svg, std::string_view caption);

}  // namespace reprise::reports
