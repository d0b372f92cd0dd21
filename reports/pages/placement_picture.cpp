#include <algorithm>
#include <limits>
#include <set>

#include "core/base/print.hpp"
#include "reports/pages/escape.hpp"
#include "reports/pages/facts.hpp"
#include "reports/pages/picture.hpp"
#include "reports/pages/pictures.hpp"

namespace reprise::reports {
namespace {

using Shape = std::vector<std::int64_t>;

/// A half-open range of rows or columns of the picture.
struct Stretch {
  double begin = 0;
  double end = 0;
};

/// A rectangle of rows and columns.
struct Region {
  Stretch rows;
  Stretch columns;
};

constexpr std::size_t kRegionsMax = 512;
/// Lengths beyond this are not exact as a double. No tensor has them.
constexpr std::int64_t kLengthMax = std::int64_t{1} << 50;

/// The shape as rows and columns: dimension 0 goes down, and the last one to the right. All but the
/// last are flattened into rows. A tensor of one dimension is a single column.
struct Sheet {
  double rows = 1;
  double columns = 1;

  explicit Sheet(const Shape& shape) {
    const bool wide = shape.size() > 1;
    for (std::size_t d = 0; d + (wide ? 1 : 0) < shape.size(); ++d) {
      rows *= static_cast<double>(shape[d]);
    }
    if (wide) columns = static_cast<double>(shape.back());
  }
};

bool is_drawable(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(),
                     [](std::int64_t length) { return length > 0 && length <= kLengthMax; });
}

/// True if the box lies within the shape. A damaged report may have any numbers.
bool fits(const PlacedBox& box, const Shape& shape) {
  if (box.offset.size() != shape.size() || box.extent.size() != shape.size()) return false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (box.extent[d] < 1 || box.extent[d] > shape[d]) return false;
    if (box.offset[d] < 0 || box.offset[d] > shape[d] - box.extent[d]) return false;
  }
  return true;
}

bool has_element(const PlacedBox& box, const Shape& index) {
  if (index.empty() || index.size() != box.offset.size()) return false;
  for (std::size_t d = 0; d < index.size(); ++d) {
    if (index[d] < box.offset[d] || index[d] - box.offset[d] >= box.extent[d]) return false;
  }
  return true;
}

/// Returns the regions of a box. It has several if a dimension that is flattened is cut.
///
///   [experts 4, rows 3, columns 2]      rows 0..2 of experts 1 and 2 are the rows 3..5 and 6..8
std::vector<Region> regions_of(const PlacedBox& box, const Shape& shape) {
  const std::size_t flat = shape.size() > 1 ? shape.size() - 1 : shape.size();
  Stretch columns{0, 1};
  if (shape.size() > 1) {
    columns.begin = static_cast<double>(box.offset.back());
    columns.end = columns.begin + static_cast<double>(box.extent.back());
  }
  std::vector<Stretch> rows = {{0, 1}};
  for (std::size_t d = 0; d < flat; ++d) {
    const auto length = static_cast<double>(shape[d]);
    const auto begin = static_cast<double>(box.offset[d]);
    const auto extent = static_cast<double>(box.extent[d]);
    std::vector<Stretch> inner;
    for (const auto& [first, last] : rows) {
      // Rows in a row stay one stretch as long as the box has all of the next dimension.
      if (extent == length) {
        inner.push_back({first * length, last * length});
        continue;
      }
      for (double at = first; at < last && inner.size() < kRegionsMax; ++at) {
        inner.push_back({at * length + begin, at * length + begin + extent});
      }
    }
    rows = std::move(inner);
  }
  std::vector<Region> regions;
  for (const auto& stretch : rows) regions.push_back({stretch, columns});
  return regions;
}

/// Places rows or columns in the picture. Between two cuts the scale is even, and no such interval
/// is too narrow for a label.
class Axis {
 public:
  Axis(const std::set<double>& cuts, double begin, double room, double least)
      : cuts_(cuts.begin(), cuts.end()), places_{begin} {
    constexpr std::size_t kManyCuts = 66;
    if (cuts_.size() > kManyCuts) least = 4;
    const double length = cuts_.back() - cuts_.front();
    for (std::size_t i = 1; i < cuts_.size(); ++i) {
      const double part = (cuts_[i] - cuts_[i - 1]) / length;
      places_.push_back(places_.back() + std::max(least, room * part));
    }
  }

  double place(double at) const {
    const auto next = std::upper_bound(cuts_.begin() + 1, cuts_.end() - 1, at);
    const auto i = static_cast<std::size_t>(next - cuts_.begin());
    const double part = (at - cuts_[i - 1]) / (cuts_[i] - cuts_[i - 1]);
    return places_[i - 1] + part * (places_[i] - places_[i - 1]);
  }
  double end() const { return places_.back(); }
  const std::vector<double>& cuts() const { return cuts_; }

 private:
  std::vector<double> cuts_;
  std::vector<double> places_;
};

struct DrawnBox {
  const PlacedBox* box;
  std::vector<Region> regions;
  bool wrong;
};

//        0        32       64
//      0 +--------+--------+
//        | rank 0 | rank 1 |
//     48 +--------+--------+
//        | rank 2 |x rank 3|     the part with the wrong element has a thick outline
//     96 +--------+--------+
class CutPicture {
 public:
  CutPicture(const TensorPlacement& placement, const TensorCut& cut, std::optional<std::size_t> at)
      : placement_(placement), cut_(cut), sheet_(placement.shape) {
    for (const auto& box : cut.boxes) {
      if (!fits(box, placement.shape)) continue;
      const bool wrong = placement.index.empty() ? cut.life == at && has_rank(box)
                                                 : has_element(box, placement.index);
      boxes_.push_back({&box, regions_of(box, placement.shape), wrong});
    }
  }

  bool is_empty() const { return boxes_.empty(); }
  /// True if the parts have fewer elements together than the tensor, so that some have no holder.
  bool has_gap() const {
    double elements = sheet_.rows * sheet_.columns;
    for (const auto& drawn : boxes_) {
      double own = 1;
      for (const auto extent : drawn.box->extent) own *= static_cast<double>(extent);
      elements -= own;
    }
    return cut_.boxes_left_out == 0 && elements > 0;
  }
  /// True if some part has more regions than are drawn.
  bool is_cut_short() const {
    return std::any_of(boxes_.begin(), boxes_.end(),
                       [](const DrawnBox& drawn) { return drawn.regions.size() >= kRegionsMax; });
  }

  std::string svg() {
    std::set<double> row_cuts = {0, sheet_.rows};
    std::set<double> column_cuts = {0, sheet_.columns};
    for (const auto& drawn : boxes_) {
      for (const auto& region : drawn.regions) {
        row_cuts.insert({region.rows.begin, region.rows.end});
        column_cuts.insert({region.columns.begin, region.columns.end});
      }
    }
    const double left = 14 + width_of(shortest(sheet_.rows));
    const Axis rows(row_cuts, 24, 120, 20);
    const bool column = placement_.shape.size() < 2;
    const Axis columns(column_cuts, left, column ? 130 : 240, 46);
    Picture picture("Placement of " + placement_.key + " in life " + std::to_string(cut_.life),
                    description());
    draw_numbers(rows, columns, column, picture);
    // The frame is seen where no rank holds anything.
    picture.box(place({{0, sheet_.rows}, {0, sheet_.columns}}, rows, columns), "frame");
    for (const auto& drawn : boxes_) draw_box(drawn, rows, columns, picture);
    for (const auto& drawn : boxes_) {
      if (drawn.wrong) outline(drawn, rows, columns, picture);
    }
    draw_cross(rows, columns, picture);
    return picture.svg(columns.end() + 22, rows.end() + 12);
  }

 private:
  bool has_rank(const PlacedBox& box) const {
    return placement_.rank &&
           std::find(box.ranks.begin(), box.ranks.end(), *placement_.rank) != box.ranks.end();
  }

  static std::string box_line(const PlacedBox& box) {
    std::vector<std::string> sides;
    for (std::size_t d = 0; d < box.offset.size(); ++d) {
      sides.push_back(std::to_string(box.offset[d]) + ":" +
                      std::to_string(box.offset[d] + box.extent[d]));
    }
    return ranks_text(box.ranks) + ": [" + join(sides, ", ") + "]";
  }

  std::string description() const {
    std::vector<std::string> lines;
    for (const auto& drawn : boxes_) {
      lines.push_back(box_line(*drawn.box) + (drawn.wrong ? ", which has the wrong element" : ""));
    }
    return join(lines, "; ");
  }

  static Picture::Box place(const Region& region, const Axis& rows, const Axis& columns) {
    const Point at{columns.place(region.columns.begin), rows.place(region.rows.begin)};
    return {at, columns.place(region.columns.end) - at.x, rows.place(region.rows.end) - at.y};
  }

  /// Returns the ranks in the longest form that the width has room for.
  static std::string label_for(const PlacedBox& box, double width) {
    std::string whole = ranks_text(box.ranks);
    if (width_of(whole) <= width - 6) return whole;
    std::string numbers = whole.substr(whole.find(' ') + 1);
    if (width_of(numbers) <= width - 6) return numbers;
    return clipped(numbers, static_cast<std::size_t>(std::max(1.0, (width - 6) / 6.6 - 1)));
  }

  static void draw_numbers(const Axis& rows, const Axis& columns, bool column, Picture& picture) {
    constexpr double kApart = 12;
    double last = -kApart;
    for (const double cut : rows.cuts()) {
      const double y = rows.place(cut);
      if (y - last < kApart) continue;
      picture.text({columns.place(0) - 6, y + 4}, shortest(cut), "end quiet");
      last = y;
    }
    if (column) return;
    for (const double cut : columns.cuts()) {
      picture.text({columns.place(cut), 16}, shortest(cut), "middle quiet");
    }
  }

  static void draw_box(const DrawnBox& drawn, const Axis& rows, const Axis& columns,
                       Picture& picture) {
    constexpr std::uint32_t kColours = 8;
    const auto first =
        drawn.box->ranks.empty() ? 0U : static_cast<std::uint32_t>(drawn.box->ranks.front());
    const std::string look = "part part" + std::to_string(first % kColours);
    for (const auto& region : drawn.regions) {
      const Picture::Box box = place(region, rows, columns);
      picture.box(box, look, 1, box_line(*drawn.box));
      if (box.height < 14) continue;
      picture.text({box.at.x + box.width / 2, box.at.y + box.height / 2 + 4},
                   label_for(*drawn.box, box.width), "middle");
    }
  }

  static void outline(const DrawnBox& drawn, const Axis& rows, const Axis& columns,
                      Picture& picture) {
    for (const auto& region : drawn.regions) {
      picture.box(place(region, rows, columns), "wrong", 1, box_line(*drawn.box));
    }
  }

  void draw_cross(const Axis& rows, const Axis& columns, Picture& picture) const {
    const PlacedBox element{placement_.index, Shape(placement_.index.size(), 1), {}};
    if (placement_.index.empty() || !fits(element, placement_.shape)) return;
    const Picture::Box box = place(regions_of(element, placement_.shape).front(), rows, columns);
    // The cross stays inside of the grid, even if the element is at its edge.
    constexpr double kArm = 6;
    const double x =
        std::clamp(box.at.x + box.width / 2, columns.place(0) + kArm + 2, columns.end() - kArm - 2);
    const double y =
        std::clamp(box.at.y + box.height / 2, rows.place(0) + kArm + 2, rows.end() - kArm - 2);
    for (const char* look : {"cross under", "cross"}) {
      picture.line({x - kArm, y - kArm}, {x + kArm, y + kArm}, look);
      picture.line({x - kArm, y + kArm}, {x + kArm, y - kArm}, look);
    }
  }

  const TensorPlacement& placement_;
  const TensorCut& cut_;
  Sheet sheet_;
  std::vector<DrawnBox> boxes_;
};

std::string dimensions_text(const Shape& shape) {
  if (shape.size() < 2) return "";
  if (shape.size() == 2) return " Dimension 0 goes down, dimension 1 to the right.";
  return " The dimensions 0 to " + std::to_string(shape.size() - 2) +
         " are flattened and go down, dimension " + std::to_string(shape.size() - 1) +
         " goes to the right.";
}

std::string cut_figure(const TensorPlacement& placement, const TensorCut& cut,
                       std::optional<std::size_t> at, const std::string& what) {
  CutPicture picture(placement, cut, at);
  if (picture.is_empty()) return "";
  std::string caption = what + " life " + std::to_string(cut.life) + " (" + cut.layout +
                        "): " + placement.key + " of shape [" + join(placement.shape, ", ") +
                        "], and the ranks that hold each part." + dimensions_text(placement.shape);
  if (!placement.index.empty()) {
    caption += " The cross marks the wrong element " +
               element_text(placement.key, placement.index) + ", and the outline its part.";
  } else if (cut.life == at && placement.rank) {
    caption += " The outline marks what rank " + std::to_string(*placement.rank) + " holds.";
  }
  if (picture.has_gap()) caption += " No rank holds what is empty.";
  if (cut.boxes_left_out > 0) caption += " " + counted(cut.boxes_left_out, "more part") + ".";
  if (picture.is_cut_short()) {
    caption += " Of each part at most " + std::to_string(kRegionsMax) + " stretches are drawn.";
  }
  return figure(picture.svg(), caption);
}

}  // namespace

std::string placement_figures(const Failure& failure) {
  if (!failure.placement || !is_drawable(failure.placement->shape)) return "";
  const TensorPlacement& placement = *failure.placement;
  std::string figures;
  if (placement.saved) {
    figures += cut_figure(placement, *placement.saved, failure.life, "At the save of");
  }
  if (placement.loaded) {
    figures += cut_figure(placement, *placement.loaded, failure.life, "At the load of");
  }
  return figures.empty() ? "" : "<div>" + figures + "</div>\n";
}

}  // namespace reprise::reports
