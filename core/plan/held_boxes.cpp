#include "core/plan/held_boxes.hpp"

#include <algorithm>
#include <numeric>

#include "reprise/error.hpp"

namespace reprise {
namespace {

std::uint64_t elements_of(const Box& box) {
  const auto elements = checked_volume(box.extent);
  if (elements) return static_cast<std::uint64_t>(*elements);
  throw Error(Code::kExtentMismatch,
              "a box of extent " + to_string(box.extent) + " is too large to be a box of a tensor");
}

}  // namespace

void batch_boxes(HeldBoxes& held) {
  const auto count = static_cast<std::uint32_t>(held.boxes->size());
  std::vector<std::uint64_t> elements;
  elements.reserve(count);
  for (const Box& box : *held.boxes) elements.push_back(elements_of(box));
  const auto holders = [&held](std::uint32_t box) { return held.first[box + 1] - held.first[box]; };
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (holders(a) != holders(b)) return holders(a) < holders(b);
    return elements[a] != elements[b] ? elements[a] > elements[b] : a < b;
  });
  for (const std::uint32_t box : order) {
    auto& batches = held.batches;
    if (batches.empty() || batches.back().holders != holders(box) ||
        batches.back().elements != elements[box]) {
      batches.push_back({holders(box), elements[box], {}});
    }
    batches.back().boxes.push_back(box);
  }
}

}  // namespace reprise
