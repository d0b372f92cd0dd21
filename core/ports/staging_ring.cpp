#include "core/ports/staging_ring.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/base/caught.hpp"
#include "core/base/check.hpp"

namespace reprise {

StagingRing::StagingRing(MutableByteSpan staging, std::size_t room, Device& device)
    : staging_(staging), room_(room), device_(device) {
  CHECK(room_ <= staging_.size(), room_, staging_.size());
}

StagingRing::~StagingRing() {
  try {
    settle();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): an earlier error is told
  }
}

MutableByteSpan StagingRing::take(std::size_t bytes) {
  CHECK(bytes <= room_, bytes, room_);
  begin_ = staging_.size() - end_ < bytes ? 0 : end_;
  end_ = begin_ + bytes;
  while (is_used(begin_, end_)) wait_for_oldest();
  return staging_.subspan(begin_, bytes);
}

bool StagingRing::is_used(std::size_t begin, std::size_t end) const {
  return std::any_of(uses_.begin(), uses_.end(),
                     [=](const Use& use) { return use.begin < end && begin < use.end; });
}

void StagingRing::wait_for_oldest() {
  device_.wait(uses_.front().event);
  uses_.pop_front();  // only now: settle() waits again if that failed
}

void StagingRing::scatter(std::span<const ScatterCopy> copies) {
  if (copies.empty()) return;
  uses_.push_back({begin_, end_, device_.scatter(copies)});
}

void StagingRing::settle() {
  FirstFailure failure;
  // Earlier copies may run even if later ones can't be queued, or if a wait fails.
  if (!uses_.empty()) failure.attempt([&] { device_.publish(); });
  for (const Use& use : std::exchange(uses_, {})) failure.attempt([&] { device_.wait(use.event); });
  failure.rethrow();
}

}  // namespace reprise
