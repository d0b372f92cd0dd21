#include "core/reshard/layout_rule.hpp"

#include <map>

namespace reprise {

BoxRule layout_rule(const LayoutBoxes& boxes, std::span<const LayoutPlace> places,
                    std::int32_t writers) {
  return [&boxes, places, writers](std::uint32_t tensor) {
    std::map<Box, std::int32_t> owners;
    for (std::size_t p = 0; p < places.size(); ++p) {
      const std::size_t writer = p * static_cast<std::size_t>(writers) / places.size();
      for (const Box& box : boxes.of(tensor, places[p])) {
        owners.emplace(box, static_cast<std::int32_t>(writer));
      }
    }
    std::vector<OwnedBox> owned;
    for (const auto& [box, writer] : owners) owned.push_back({box, writer});
    return owned;
  };
}

}  // namespace reprise
