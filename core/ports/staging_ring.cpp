#include "core/ports/staging_ring.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/base/caught.hpp"
#include "core/base/check.hpp"

namespace reprise {

StagingRing::StagingRing(MutableByteSpan staging, std::size_t room, Device& device, Readers readers)
    : staging_(staging), room_(room), device_(device), readers_(readers) {
  CHECK(room_ <= staging_.size(), room_, staging_.size());
}

StagingRing::~StagingRing() {
  reading_.clear();  // waits for the reads
  try {
    drain();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): an earlier error is told
  }
}

void StagingRing::start(const Extent& part, Part read, Part use) {
  while (reading_.size() >= readers_.most) use_oldest();
  auto task =
      readers_.tasks->start([read = std::move(read), memory = memory(part)] { read(memory); });
  reading_.push_back({part, std::move(task), std::move(use)});
}

StagingRing::Extent StagingRing::take(std::size_t bytes) {
  CHECK(bytes <= room_, bytes, room_);
  const std::size_t begin = staging_.size() - end_ < bytes ? 0 : end_;
  const Extent part{begin, begin + bytes};
  end_ = part.end;
  const auto meets = [&part](const auto& other) { return other.part.meets(part); };
  while (std::any_of(reading_.begin(), reading_.end(), meets)) use_oldest();
  while (std::any_of(copying_.begin(), copying_.end(), meets)) {
    device_.wait(copying_.front().event);
    copying_.pop_front();  // only now: drain() waits again if that failed
  }
  return part;
}

void StagingRing::use_oldest() {
  const Reading oldest = std::move(reading_.front());
  reading_.pop_front();
  try {
    oldest.task->wait();
    in_use_ = oldest.part;
    oldest.use(memory(oldest.part));
  } catch (...) {
    reading_.clear();  // waits for the reads
    throw;
  }
}

void StagingRing::scatter(std::span<const ScatterCopy> copies) {
  if (copies.empty()) return;
  copying_.push_back({in_use_, device_.scatter(copies)});
}

void StagingRing::catch_up() {
  while (!reading_.empty()) use_oldest();
}

void StagingRing::drain() {
  FirstFailure failure;
  failure.attempt([this] { catch_up(); });
  // Earlier copies may run even if later ones can't be queued, or if a wait fails.
  if (!copying_.empty()) failure.attempt([this] { device_.publish(); });
  for (const Copying& copy : std::exchange(copying_, {})) {
    failure.attempt([&] { device_.wait(copy.event); });
  }
  failure.rethrow();
}

}  // namespace reprise
