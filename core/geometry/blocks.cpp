#include "core/geometry/blocks.hpp"

#include <algorithm>

namespace reprise {
namespace {

class Cutter {
 public:
  Cutter(const Box& part, std::int64_t elements_max, const std::function<void(const Box&)>& visit)
      : elements_max_(elements_max), visit_(visit), box_(part) {}

  /// Splits box_ along dimension `d` and the dimensions after it. In these dimensions box_ still
  /// has the part's full extent.
  void cut(std::size_t d) {
    if (d == box_.ndim() || box_.elements() <= elements_max_) return visit_(box_);
    const std::int64_t begin = box_.offset[d];
    const std::int64_t extent = box_.extent[d];
    const std::int64_t row = box_.elements() / extent;
    const std::int64_t step = std::max<std::int64_t>(1, elements_max_ / row);
    for (std::int64_t at = 0; at < extent; at += step) {
      box_.offset[d] = begin + at;
      box_.extent[d] = std::min(step, extent - at);
      cut(d + 1);
    }
    box_.offset[d] = begin;
    box_.extent[d] = extent;
  }

 private:
  std::int64_t elements_max_;
  const std::function<void(const Box&)>& visit_;
  Box box_;
};

}  // namespace

void for_each_block(const Dims& shape, std::int64_t elements_max,
                    const std::function<void(const Box&)>& visit) {
  for_each_block(Box::whole(shape), elements_max, visit);
}

void for_each_block(const Box& part, std::int64_t elements_max,
                    const std::function<void(const Box&)>& visit) {
  if (part.elements() == 0) return;
  Cutter(part, elements_max, visit).cut(0);
}

}  // namespace reprise
