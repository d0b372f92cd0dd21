#include "reports/pages/picture.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "reports/pages/escape.hpp"

namespace reprise::reports {
namespace {

std::string attribute(std::string_view name, double value) {
  return " " + std::string(name) + "=\"" + fixed(value, 1) + "\"";
}

std::string look_of(std::string_view look) {
  return look.empty() ? "" : " class=\"" + in_html(look) + "\"";
}

std::string corners_of(const std::vector<Point>& points) {
  std::string text = " points=\"";
  for (const auto& point : points) text += fixed(point.x, 1) + "," + fixed(point.y, 1) + " ";
  return text + "\"";
}

}  // namespace

std::string shortest(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end.ptr};
}

std::string brief(double value) {
  if (!std::isfinite(value)) return shortest(value);
  std::array<char, 64> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 7);
  return {text.data(), end.ptr};
}

std::string fixed(double value, int digits) {
  if (!std::isfinite(value)) return shortest(value);
  std::array<char, 400> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 std::chars_format::fixed, digits);
  return {text.data(), end.ptr};
}

double width_of(std::string_view text) {
  double width = 0;
  for (const char letter : text) {
    const bool wide = (letter >= 'A' && letter <= 'Z') || letter == '_' || letter == 'm';
    width += wide ? 8.4 : 6.6;
  }
  return width;
}

Picture::Picture(std::string_view title, std::string_view description)
    : title_(in_html(title)), description_(in_html(description)) {}

void Picture::end_shape(std::string_view name, std::string_view hint) {
  if (hint.empty()) {
    shapes_ += "/>";
  } else {
    shapes_ += "><title>" + in_html(hint) + "</title></" + std::string(name) + ">";
  }
}

void Picture::box(Box box, std::string_view look, double opacity, std::string_view hint) {
  shapes_ += "<rect" + look_of(look) + attribute("x", box.at.x) + attribute("y", box.at.y) +
             attribute("width", box.width) + attribute("height", box.height);
  if (opacity < 1) shapes_ += " fill-opacity=\"" + fixed(opacity, 2) + "\"";
  end_shape("rect", hint);
}

void Picture::line(Point from, Point to, std::string_view look) { path({from, to}, look); }

void Picture::path(const std::vector<Point>& points, std::string_view look) {
  shapes_ += "<polyline" + look_of(look) + corners_of(points) + "/>";
}

void Picture::shape(const std::vector<Point>& corners, std::string_view look,
                    std::string_view hint) {
  shapes_ += "<polygon" + look_of(look) + corners_of(corners);
  end_shape("polygon", hint);
}

void Picture::dot(Point at, std::string_view look, std::string_view hint) {
  shapes_ +=
      "<circle" + look_of(look) + attribute("cx", at.x) + attribute("cy", at.y) + attribute("r", 3);
  end_shape("circle", hint);
}

void Picture::text(Point at, std::string_view words, std::string_view look) {
  shapes_ += "<text" + look_of(look) + attribute("x", at.x) + attribute("y", at.y) + ">" +
             in_html(words) + "</text>";
}

void Picture::upright(Point at, std::string_view words) {
  const std::string place = fixed(at.x, 1) + " " + fixed(at.y, 1);
  shapes_ +=
      "<text transform=\"translate(" + place + ") rotate(-90)\">" + in_html(words) + "</text>";
}

std::string Picture::svg(double width, double height) const {
  constexpr double kNarrow =
      420;  // a picture that shrinks to a phone's width and can still be read
  const std::string wide = fixed(std::ceil(width), 0);
  const std::string high = fixed(std::ceil(height), 0);
  return "<svg role=\"img\"" + look_of(width > kNarrow ? "wide" : "") + " aria-label=\"" + title_ +
         "\" viewBox=\"0 0 " + wide + " " + high + "\" width=\"" + wide + "\" height=\"" + high +
         "\"><title>" + title_ + "</title><desc>" + description_ + "</desc>" + shapes_ + "</svg>\n";
}

std::string figure(const std::string& svg, std::string_view caption) {
  return "<figure><div class=\"scroll\">" + svg + "</div><figcaption>" + in_html(caption) +
         "</figcaption></figure>\n";
}

}  // namespace reprise::reports
