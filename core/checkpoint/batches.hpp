#pragma once
// Cuts work on elements into batches, and does them on all threads.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "core/checkpoint/earliest_failure.hpp"
#include "reprise/ports.hpp"

namespace reprise {

/// Most bytes of elements that one piece of work reads at a time.
inline constexpr std::uint64_t kBatchBytes = std::uint64_t{1} << 20U;

/// The elements [begin, end) of one of several items, such as tensors.
struct Batch {
  std::size_t item = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Appends the batches of an item of so many elements of `width` bytes.
inline void add_batches(std::size_t item, std::int64_t elements, std::size_t width,
                        std::vector<Batch>& batches) {
  const auto step = static_cast<std::int64_t>(kBatchBytes / width);
  for (std::int64_t begin = 0; begin < elements; begin += step) {
    batches.push_back({item, begin, std::min(begin + step, elements)});
  }
}

/// Does `count` pieces of work on all threads of `tasks`, each thread taking the next one. Each
/// thread has a worker of its own, which `make` returns for its number, and which is called with
/// the numbers of pieces. After an error, no piece is begun any more; once all threads have
/// stopped, the error of the first piece that failed is thrown, so it does not depend on the
/// threads.
template <class Make>
void do_all(Tasks& tasks, std::size_t count, const Make& make) {
  std::atomic<std::size_t> next = 0;
  EarliestFailure failed;
  std::vector<std::unique_ptr<Task>> running;
  for (std::size_t thread = 0; thread < static_cast<std::size_t>(tasks.threads()); ++thread) {
    running.push_back(tasks.start([&, thread] {
      std::size_t i = count;
      try {
        auto worker = make(thread);
        for (i = next++; i < count; i = next++) worker(i);
      } catch (...) {
        next = count;
        failed.note(i, std::current_exception());
        throw;
      }
    }));
  }
  for (const auto& task : running) {
    try {
      task->wait();
    } catch (...) {
      failed.note(count, std::current_exception());
    }
  }
  failed.rethrow();
}

}  // namespace reprise
