#include "core/ports/staging_ring.hpp"

#include <algorithm>
#include <exception>

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
  const Use oldest = uses_.front();
  uses_.pop_front();
  device_.wait(oldest.event);
}

void StagingRing::scatter(std::span<const ScatterCopy> copies) {
  if (copies.empty()) return;
  uses_.push_back({begin_, end_, device_.scatter(copies)});
}

void StagingRing::settle() {
  std::exception_ptr first;
  if (!uses_.empty()) device_.publish();
  while (!uses_.empty()) {
    try {
      wait_for_oldest();
    } catch (const std::exception&) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace reprise
