#include "tests/models/cuda/queues.hpp"

#include <algorithm>
#include <utility>

namespace reprise::models {
namespace {

/// A caller who polls sees a place as not reached this often, unless it was reached before.
constexpr std::uint64_t kPolls = 3;

}  // namespace

bool reached(const Place& place) {
  return place.queue == nullptr || place.queue->finished >= place.after;
}

Place end_of(const std::shared_ptr<Queue>& queue) { return {queue, queue->queued}; }

Queues::~Queues() {
  for (const auto& queue : queues_) queue->entries.clear();
}

std::shared_ptr<Queue> Queues::make(int device, bool blocking) {
  queues_.push_back(std::make_shared<Queue>(Queue{.device = device, .blocking = blocking}));
  return queues_.back();
}

void Queues::forget(const std::shared_ptr<Queue>& queue) {
  // A queue with entries stays until they have run.
  if (queue->entries.empty()) std::erase(queues_, queue);
}

void Queues::add(const std::shared_ptr<Queue>& queue, Queue::Entry entry) {
  queue->entries.push_back(std::move(entry));
  ++queue->queued;
  if (schedule_ == Schedule::kEager) run_until(end_of(queue));
}

bool Queues::run_until(const Place& place) {
  while (!reached(place)) {
    Queue& queue = *place.queue;
    const Place before = queue.entries.front().waits_for;
    if (!run_until(before) || is_held(queue)) return false;
    run_one(queue);
  }
  return true;
}

void Queues::drain(int device) {
  // The list may not change while entries run: only calls of the runtime change it.
  for (const auto& queue : queues_) {
    if (queue->device == device) run_until(end_of(queue));
  }
}

void Queues::go_on() {
  if (schedule_ == Schedule::kEager) {
    for (const auto& queue : queues_) run_until(end_of(queue));  // what is not held any more
  }
  if (schedule_ != Schedule::kRandom) return;
  while (random_.below(2) == 0) {
    std::vector<Queue*> ready;
    for (const auto& queue : queues_) {
      if (is_ready(*queue)) ready.push_back(queue.get());
    }
    if (ready.empty()) return;
    run_one(*ready[random_.below(ready.size())]);
  }
}

bool Queues::poll(const Place& place) {
  if (reached(place)) return true;
  if (++polled_ >= kPolls) run_until(place);
  if (!reached(place)) return false;
  polled_ = 0;
  return true;
}

bool Queues::is_stuck(int device) const {
  for (const auto& queue : queues_) {
    if (queue->device != device) continue;
    for (const auto& entry : queue->entries) {
      if (entry.never_ends && entry.held()) return true;
    }
  }
  return false;
}

bool Queues::is_touched(const std::byte* first, std::size_t bytes) const {
  for (const auto& queue : queues_) {
    for (const auto& entry : queue->entries) {
      for (const auto& touched : entry.touched) {
        if (touched.first < first + bytes && first < touched.first + touched.bytes) return true;
      }
    }
  }
  return false;
}

bool Queues::is_ready(const Queue& queue) const {
  return !queue.entries.empty() && reached(queue.entries.front().waits_for) && !is_held(queue);
}

bool Queues::is_held(const Queue& queue) {
  const auto& held = queue.entries.front().held;
  return held && held();
}

void Queues::run_one(Queue& queue) {
  const Queue::Entry entry = std::move(queue.entries.front());
  queue.entries.pop_front();
  if (entry.run) entry.run();
  ++queue.finished;
}

}  // namespace reprise::models
