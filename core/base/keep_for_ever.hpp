#pragma once
// For memory that a device may still use when its owner is done with it.

#include <deque>
#include <mutex>
#include <utility>

namespace reprise {

/// Keeps the object until the process ends. Thread-safe.
template <class Kept>
void keep_for_ever(Kept kept) {
  static std::mutex mutex;
  static auto* const all = new std::deque<Kept>;  // never freed
  const std::scoped_lock lock(mutex);
  all->push_back(std::move(kept));
}

}  // namespace reprise
