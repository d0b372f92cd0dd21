#include "core/geometry/tiling.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/random.hpp"
#include "core/geometry/box_grid.hpp"
#include "core/geometry/sweep.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

/// Returns the dimensions in which some box is shorter than `whole`.
std::vector<std::size_t> cut_dimensions(const Box& whole, std::span<const Box> boxes) {
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < whole.ndim(); ++d) {
    const auto is_cut = [&](const Box& box) { return !(box.interval(d) == whole.interval(d)); };
    if (std::any_of(boxes.begin(), boxes.end(), is_cut)) dims.push_back(d);
  }
  return dims;
}

/// The corners of all boxes. Each corner has a number; the numbers are in the lexicographic order
/// of the corners' coordinates.
class Corners {
 public:
  Corners(const Box& whole, std::span<const Box> boxes)
      : whole_(whole), dims_(cut_dimensions(whole, boxes)) {
    if (((boxes.size() + 1) << dims_.size()) > kCornersMax || !number_faces(boxes)) {
      throw Error(Code::kLimit, "whether " + std::to_string(boxes.size()) + " boxes cut in " +
                                    std::to_string(dims_.size()) +
                                    " dimensions tile a tensor is too expensive to check");
    }
    corners_.reserve((boxes.size() + 1) << dims_.size());
    for (const Box& box : boxes) add(box, 0);
    add(whole, 1);
    std::sort(corners_.begin(), corners_.end());
  }

  struct Left {
    Dims at;
    std::int64_t count = 0;
  };
  /// Returns the first corner at which the signs do not add up to 0; nothing if there is none.
  std::optional<Left> first_left() const {
    for (std::size_t i = 0; i < corners_.size();) {
      const Wide number = corners_[i] >> 1U;
      std::int64_t count = 0;
      for (; i < corners_.size() && corners_[i] >> 1U == number; ++i) {
        count += (corners_[i] & 1U) == 0 ? 1 : -1;
      }
      if (count != 0) return Left{coordinates(number), count};
    }
    return std::nullopt;
  }

 private:
  /// Collects the distinct faces of each cut dimension. False if the corner numbers would overflow.
  bool number_faces(std::span<const Box> boxes) {
    Wide numbers = 1;
    for (const std::size_t d : dims_) {
      auto& faces = faces_.emplace_back();
      faces.reserve(2 * boxes.size() + 2);
      const auto both = [&](Interval span) {
        faces.push_back(span.begin);
        faces.push_back(span.end);
      };
      for (const Box& box : boxes) both(box.interval(d));
      both(whole_.interval(d));
      std::sort(faces.begin(), faces.end());
      faces.erase(std::unique(faces.begin(), faces.end()), faces.end());
      constexpr Wide kNumbersMax = Wide{1} << 126U;
      if (numbers > kNumbersMax / faces.size()) return false;
      numbers *= faces.size();
    }
    return true;
  }

  /// Adds the corners of a box, with their signs. The first corner has the sign +1 if `sign` is 0,
  /// and -1 if it is 1. In each dimension, the signs at the start and at the end are opposite.
  void add(const Box& box, unsigned sign) {
    std::vector<Wide> numbers = {sign};
    for (std::size_t c = 0; c < dims_.size(); ++c) {
      const Interval span = box.interval(dims_[c]);
      const Wide begin = face(c, span.begin);
      const Wide end = face(c, span.end);
      const std::size_t count = numbers.size();
      for (std::size_t i = 0; i < count; ++i) {
        const Wide prefix = (numbers[i] >> 1U) * faces_[c].size();
        const Wide turned = numbers[i] & 1U;
        numbers[i] = ((prefix + begin) << 1U) | turned;
        numbers.push_back(((prefix + end) << 1U) | (turned ^ 1U));
      }
    }
    corners_.insert(corners_.end(), numbers.begin(), numbers.end());
  }

  Wide face(std::size_t c, std::int64_t at) const {
    return static_cast<Wide>(std::lower_bound(faces_[c].begin(), faces_[c].end(), at) -
                             faces_[c].begin());
  }

  Dims coordinates(Wide number) const {
    Dims at = whole_.offset;
    for (std::size_t c = dims_.size(); c > 0; --c) {
      const auto& faces = faces_[c - 1];
      at[dims_[c - 1]] = faces[static_cast<std::size_t>(number % faces.size())];
      number /= faces.size();
    }
    return at;
  }

  const Box& whole_;
  std::vector<std::size_t> dims_;
  std::vector<std::vector<std::int64_t>> faces_;  ///< coordinates, by position in dims_
  std::vector<Wide> corners_;  ///< for each corner, twice its number, plus 1 if its sign is -1
};

TilingFault fault_at(const Corners::Left& left, std::span<const Box> boxes) {
  const Box element{left.at, Dims::filled(left.at.size(), 1)};
  if (left.count < 0) return {.overlap = std::nullopt, .gap = element};
  std::vector<std::size_t> holders;
  for (std::size_t i = 0; i < boxes.size() && holders.size() < 2; ++i) {
    if (contains(boxes[i], element)) holders.push_back(i);
  }
  CHECK(holders.size() == 2, element);
  return {.overlap = std::pair{holders[0], holders[1]}, .gap = std::nullopt};
}

}  // namespace

std::optional<TilingFault> tiling_fault(const Box& whole, std::span<const Box> boxes,
                                        std::uint64_t sweep_steps) {
  if (whole.empty()) return std::nullopt;
  const auto grid = BoxGrid::of(boxes);
  if (grid && grid->tiles(whole)) return std::nullopt;
  const OverlapSearch search = search_overlap(boxes, sweep_steps);
  if (search.pair) return TilingFault{.overlap = search.pair, .gap = std::nullopt};
  if (!search.finished) {
    const auto left = Corners(whole, boxes).first_left();
    if (!left) return std::nullopt;
    return fault_at(*left, boxes);
  }
  // Boxes that don't overlap and have as many elements as the whole leave no gap.
  Wide elements = 0;
  for (const Box& box : boxes) elements += static_cast<Wide>(box.elements());
  if (elements == static_cast<Wide>(whole.elements())) return std::nullopt;
  const auto gap = first_gap(whole, boxes);
  if (!gap) return std::nullopt;
  return TilingFault{.overlap = std::nullopt, .gap = gap};
}

std::optional<TilingFault> tiling_fault(const Box& whole, std::span<const Box> boxes) {
  constexpr std::uint64_t kStepsMin = std::uint64_t{1} << 20U;
  constexpr std::uint64_t kStepsPerBox = 64;
  return tiling_fault(whole, boxes, kStepsMin + kStepsPerBox * boxes.size());
}

}  // namespace reprise
