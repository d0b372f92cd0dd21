#pragma once
// Cuts tensors into the boxes that the ranks of a layout ask for, so that a load under this layout
// reads nothing else.

#include <span>

#include "core/plan/layout_boxes.hpp"
#include "core/reshard/reshard.hpp"

namespace reprise {

/// Returns the rule. What the ranks at `places[p]` ask for is written by writer p * writers /
/// places; a box for which several places ask, by the first of them. Tensors for which nobody asks
/// keep their boxes. The arguments must outlive the rule. Pure.
BoxRule layout_rule(const LayoutBoxes& boxes, std::span<const LayoutPlace> places,
                    std::int32_t writers);

}  // namespace reprise
