#include "sim/fibers/fiber_chooser.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace reprise::sim {
namespace {

constexpr std::int64_t kUnseen = std::numeric_limits<std::int64_t>::min();
/// A fiber that polls would keep the others from running for ever. After so many choices in a row
/// its priority falls.
constexpr std::uint64_t kInARowMax = 1000;

}  // namespace

std::string_view name_of(Choosing choosing) {
  return choosing == Choosing::kUniform ? "uniform" : "priority";
}

FiberChooser::FiberChooser(Stream choices, SchedulePlan plan)
    : plan_(std::move(plan)), choices_(choices) {
  begin(choices, plan_.choosing);
}

void FiberChooser::begin(Stream choices, Choosing choosing) {
  choices_ = choices;
  choosing_ = choosing;
  changes_.clear();
  priorities_.clear();
  if (choosing == Choosing::kUniform) return;
  for (std::uint32_t i = 1; i < plan_.depth; ++i) {
    changes_.push_back(decisions_ + choices_.below(plan_.horizon));
  }
}

std::size_t FiberChooser::choose(std::span<const std::size_t> runnable) {
  while (next_split_ < plan_.splits.size() && plan_.splits[next_split_].at <= decisions_) {
    const ScheduleSplit& split = plan_.splits[next_split_++];
    begin(Stream(split.seed).split("schedule"), split.choosing);
  }
  const std::size_t chosen = choosing_ == Choosing::kUniform
                                 ? static_cast<std::size_t>(choices_.below(runnable.size()))
                                 : highest(runnable);
  ++decisions_;
  return chosen;
}

std::size_t FiberChooser::highest(std::span<const std::size_t> runnable) {
  const auto find = [&] {
    return std::max_element(runnable.begin(), runnable.end(), [this](std::size_t a, std::size_t b) {
      return priority_of(a) < priority_of(b);
    });
  };
  for (const auto fiber : runnable)
    priority_of(fiber);  // draws priorities in the order of the list
  auto chosen = find();
  in_a_row_ = *chosen == last_ && runnable.size() > 1 ? in_a_row_ + 1 : 0;
  const bool falls = std::find(changes_.begin(), changes_.end(), decisions_) != changes_.end();
  if (falls || in_a_row_ == kInARowMax) {
    priority_of(*chosen) = --lowest_;
    in_a_row_ = 0;
    chosen = find();
  }
  last_ = *chosen;
  return static_cast<std::size_t>(chosen - runnable.begin());
}

std::int64_t& FiberChooser::priority_of(std::size_t fiber) {
  if (fiber >= priorities_.size()) priorities_.resize(fiber + 1, kUnseen);
  std::int64_t& priority = priorities_[fiber];
  if (priority == kUnseen) priority = 1 + static_cast<std::int64_t>(choices_.next() >> 2U);
  return priority;
}

}  // namespace reprise::sim
