#include "core/diff/diff_sides.hpp"

#include "core/diff/layout_bound.hpp"

namespace reprise {

LayoutsApart DiffSides::layouts_apart() {
  if (layouts_apart_) return *layouts_apart_;
  layouts_apart_.emplace();
  std::optional<Checkpoint::Common> one;
  std::optional<Checkpoint::Common> other;
  try {
    one = left.common();
    other = right.common();
  } catch (const Error& error) {
    if (!concerns_one_item(error)) throw;
    return *layouts_apart_;  // the common state itself is compared, and reported, elsewhere
  }
  if (!one || !other || !one->item.value || !other->item.value) return *layouts_apart_;
  const auto note = [this](const ValueDifference& difference) {
    if (!is_layout_argument(difference.path)) return false;
    layouts_apart_->in_any_way = true;
    if (!is_data_parallel_argument(difference.path)) layouts_apart_->model_parallel = true;
    return false;  // false continues the search, so that all layout arguments are seen
  };
  differences(*one->item.value, *other->item.value, 1, note);
  return *layouts_apart_;
}

}  // namespace reprise
