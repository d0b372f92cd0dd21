#include "core/plan/job_load_plan.hpp"

#include <algorithm>

namespace reprise {
namespace {

/// Intersects each wanted box with the stored boxes. `index` must be built from `stored`.
Crossing cross(std::span<const Box> stored, const BoxIndex& index, std::span<const Box> wanted) {
  Crossing crossing;
  crossing.first.reserve(wanted.size() + 1);
  crossing.first.push_back(0);
  for (const Box& box : wanted) {
    for_each_hit(stored, index, box,
                 [&](const Crossing::Hit& hit) { crossing.hits.push_back(hit); });
    crossing.first.push_back(crossing.hits.size());
  }
  return crossing;
}

}  // namespace

JobLoadPlan::JobLoadPlan(const GlobalPlan& stored, std::span<const LocalPlan> wanted,
                         const Group& loaders, ChunkRule rule)
    : stored_(stored),
      wanted_(wanted),
      book_(wanted),
      layouts_(book_.placements(), loaders, rule),
      places_(wanted.size()) {
  check_members(book_, layouts_, loaders);
  for (const Section& section : book_.sections()) {
    for (const GroupRank rank : section.ranks) {
      places_[static_cast<std::size_t>(rank.value)].section = placed_.size();
    }
    auto& wishes = placed_.emplace_back();
    for (const auto& [form, placed] : section.offers->tensors) {
      const std::uint32_t at = find(form);
      const ShardLayout& layout = layouts_.of(section.placement[placed], form.shape);
      if (layout.defect) {
        throw Error(layout.defect->code, layout.defect->message, {.key = form.key});
      }
      wishes.push_back(
          {at, placed, size_of(form.dtype), &layout, &crossing_of(stored.tensors[at], layout)});
    }
  }
  for (const FormSection& section : book_.form_sections()) {
    for (const GroupRank rank : section.ranks) {
      places_[static_cast<std::size_t>(rank.value)].forms = given_.size();
    }
    auto& wishes = given_.emplace_back();
    for (const TensorForm& form : *section.forms) {
      const std::uint32_t at = find(form);
      wishes.push_back({at, form.shape.size(), size_of(form.dtype), &index_of(stored.tensors[at])});
    }
  }
}

std::uint32_t JobLoadPlan::find(const TensorForm& form) const {
  const auto found = std::lower_bound(
      stored_.tensors.begin(), stored_.tensors.end(), form.key,
      [](const PlannedTensor& tensor, const std::string& key) { return tensor.key < key; });
  if (found == stored_.tensors.end() || found->key != form.key) {
    throw Error(Code::kNotStored, "the checkpoint lacks this tensor", {.key = form.key});
  }
  if (!(found->shape == form.shape)) {
    throw Error(Code::kShapeDrift,
                "the checkpoint has shape " + to_string(found->shape) + ", but the load requests " +
                    to_string(form.shape),
                {.key = form.key});
  }
  if (found->dtype != form.dtype) {
    throw Error(Code::kDtypeDrift,
                "the checkpoint has element type " + std::string(name_of(found->dtype)) +
                    ", but the load requests " + std::string(name_of(form.dtype)),
                {.key = form.key});
  }
  return static_cast<std::uint32_t>(found - stored_.tensors.begin());
}

const BoxIndex& JobLoadPlan::index_of(const PlannedTensor& tensor) {
  const auto found = indices_.find(tensor.boxes.get());
  if (found != indices_.end()) return found->second;
  return indices_.emplace(tensor.boxes.get(), BoxIndex(*tensor.boxes)).first->second;
}

const Crossing& JobLoadPlan::crossing_of(const PlannedTensor& tensor, const ShardLayout& layout) {
  const auto [at, fresh] = crossings_.try_emplace({tensor.boxes.get(), layout.held.boxes.get()});
  if (fresh) at->second = cross(*tensor.boxes, index_of(tensor), *layout.held.boxes);
  return at->second;
}

}  // namespace reprise
