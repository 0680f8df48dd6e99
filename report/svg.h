// Drawings as inline SVG: a canvas of fixed units that takes the width of its place.
//
// Colours are classes of the style sheet (fill-good, line-bad, ...), so that light, dark and paper each have theirs. A drawing has
// a title, and a description that says in words what it shows, for who does not see it.
//
//   Canvas canvas(360, 200);
//   canvas.Line({.x = 0, .y = 180}, {.x = 360, .y = 180}, "axis");
//   canvas.Text({.x = 180, .y = 196}, "allowances", "label middle");
//   Html figure = canvas.Take("Errors", "97 % of the elements are within a quarter of the allowance");
#pragma once

#include <span>
#include <string_view>

#include "report/html.h"

namespace assay::report {

struct At {
  double x = 0, y = 0;
};
struct Size {
  double width = 0, height = 0;
};

class Canvas {
 public:
  Canvas(double width, double height) : size_{width, height} {}

  /// Sizes below zero are none; `opacity` of its fill.
  void Rect(At corner, Size size, Literal classes, double opacity = 1);
  void Line(At from, At to, Literal classes);
  void Circle(At centre, double radius, Literal classes);
  void Text(At at, std::string_view text, Literal classes);
  void Polyline(std::span<const At> points, Literal classes);
  /// Many rectangles of one size and class, as one path.
  void Tiles(std::span<const At> corners, Size size, Literal classes);

  Html Take(std::string_view title, std::string_view description) const;

 private:
  Size size_;
  Html shapes_;
};

}  // namespace assay::report
