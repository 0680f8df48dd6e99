#include "report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace assay::report {
namespace {

// Two decimals, no trailing zeros; what is no number stands at the origin.
std::string Units(double value) {
  if (!std::isfinite(value)) value = 0;
  std::string text = fmt::format("{:.2f}", std::clamp(value, -1e5, 1e5));
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string Class(Literal classes) { return std::string(classes.text); }

}  // namespace

void Canvas::Rect(At corner, Size size, Literal classes, double opacity) {
  Attributes attributes = {{"x", Units(corner.x)},
                           {"y", Units(corner.y)},
                           {"width", Units(std::max(size.width, 0.0))},
                           {"height", Units(std::max(size.height, 0.0))},
                           {"class", Class(classes)}};
  if (opacity < 1) attributes.push_back({"fill-opacity", Units(opacity)});
  shapes_ += E("rect", attributes);
}

void Canvas::Line(At from, At to, Literal classes) {
  shapes_ += E("line", {{"x1", Units(from.x)},
                        {"y1", Units(from.y)},
                        {"x2", Units(to.x)},
                        {"y2", Units(to.y)},
                        {"class", Class(classes)}});
}

void Canvas::Circle(At centre, double radius, Literal classes) {
  shapes_ += E("circle", {{"cx", Units(centre.x)},
                          {"cy", Units(centre.y)},
                          {"r", Units(radius)},
                          {"class", Class(classes)}});
}

void Canvas::Text(At at, std::string_view text, Literal classes) {
  shapes_ += E("text", {{"x", Units(at.x)}, {"y", Units(at.y)}, {"class", Class(classes)}}, text);
}

void Canvas::Polyline(std::span<const At> points, Literal classes) {
  std::string list;
  for (const At& point : points) list += Units(point.x) + "," + Units(point.y) + " ";
  shapes_ += E("polyline", {{"points", list}, {"class", Class(classes)}});
}

void Canvas::Tiles(std::span<const At> corners, Size size, Literal classes) {
  if (corners.empty()) return;
  std::string path;
  for (const At& corner : corners) {
    path += "M" + Units(corner.x) + " " + Units(corner.y) + "h" + Units(size.width) + "v" +
            Units(size.height) + "h" + Units(-size.width) + "z";
  }
  shapes_ += E("path", {{"d", path}, {"class", Class(classes)}});
}

Html Canvas::Take(std::string_view title, std::string_view description) const {
  return E("svg",
           {{"viewBox", "0 0 " + Units(size_.width) + " " + Units(size_.height)},
            {"role", "img"},
            {"class", "drawing"}},
           E("title", {}, title), E("desc", {}, description), shapes_);
}

}  // namespace assay::report
