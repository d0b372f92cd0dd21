#include "core/geometry/blocks.hpp"

#include <algorithm>

namespace reprise {
namespace {

class Cutter {
 public:
  Cutter(const Dims& shape, std::int64_t elements_max, const std::function<void(const Box&)>& visit)
      : elements_max_(elements_max), visit_(visit), box_(Box::whole(shape)) {}

  /// Splits box_ along dimension `d` and the dimensions after it. In these dimensions box_ still
  /// has the tensor's full extent.
  void cut(std::size_t d) {
    if (d == box_.ndim() || box_.elements() <= elements_max_) return visit_(box_);
    const std::int64_t extent = box_.extent[d];
    const std::int64_t row = box_.elements() / extent;
    const std::int64_t step = std::max<std::int64_t>(1, elements_max_ / row);
    for (std::int64_t at = 0; at < extent; at += step) {
      box_.offset[d] = at;
      box_.extent[d] = std::min(step, extent - at);
      cut(d + 1);
    }
    box_.offset[d] = 0;
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
  if (volume(shape) == 0) return;
  Cutter(shape, elements_max, visit).cut(0);
}

}  // namespace reprise
