#pragma once
// One checkpoint as several threads read it: a Checkpoint is for one thread.

#include <cstddef>
#include <memory>
#include <vector>

#include "core/checkpoint/checkpoint.hpp"
#include "reprise/ports.hpp"

namespace reprise {

class CheckpointCopies {
 public:
  /// `opened` must outlive this object.
  CheckpointCopies(const Checkpoint& opened, const Tasks& tasks)
      : opened_(opened), copies_(static_cast<std::size_t>(tasks.threads())) {}

  /// Returns the copy of a thread, which is made at first. Different threads may call this at the
  /// same time.
  Checkpoint& of(std::size_t thread) {
    auto& copy = copies_[thread];
    if (!copy) copy = std::make_unique<Checkpoint>(opened_);
    return *copy;
  }
  /// Removes the copies once `opened`, of which they are, knows which files they have read.
  void end_in(Checkpoint& opened) {
    for (auto& copy : copies_) {
      if (copy) opened.note_files_of(*copy);
      copy.reset();
    }
  }

 private:
  const Checkpoint& opened_;
  std::vector<std::unique_ptr<Checkpoint>> copies_;
};

}  // namespace reprise
