#include "core/plan/held_boxes.hpp"

#include <map>
#include <utility>
#include <vector>

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
  // Few batches have many boxes each, so that a box is added to the batch of the one before it, or
  // to one that is found by its numbers.
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::uint32_t>> batches;
  auto last = batches.end();
  const auto count = static_cast<std::uint32_t>(held.boxes->size());
  for (std::uint32_t box = 0; box < count; ++box) {
    const std::uint32_t holders = held.first[box + 1] - held.first[box];
    const std::uint64_t fewer = ~elements_of((*held.boxes)[box]);  // the largest boxes come first
    if (last == batches.end() || last->first != std::pair(holders, fewer)) {
      last = batches.try_emplace({holders, fewer}).first;
    }
    last->second.push_back(box);
  }
  held.batches.reserve(batches.size());
  for (auto& [of, boxes] : batches) {
    held.batches.push_back({of.first, ~of.second, std::move(boxes)});
  }
}

}  // namespace reprise
