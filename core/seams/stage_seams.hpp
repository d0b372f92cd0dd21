#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "reprise/ports.hpp"

namespace reprise {

/// The things to do with a full batch: first `drain`, then `sum`, then `write`.
struct BatchWork {
  std::function<void()> drain;  ///< waits until every copy into the batch has ended
  std::function<void()> sum;    ///< computes checksums; null if there is nothing to compute
  std::function<void()> write;
  std::uint64_t bytes = 0;  ///< of the batch
};
/// The steps that write a batch, divided between threads. The caller runs `now` when it has filled
/// the next batch. If staging holds the whole file, background tasks run it, once the copies have
/// begun. They then run `sum`, if it is not null, and then `later`. `sum` of a batch may run beside
/// `later` of the batch before.
struct BatchOrder {
  std::function<void()> now;
  std::function<void()> sum;
  std::function<void()> later;
};
/// Puts `drain` into `now`, `sum` into `sum` and `write` into `later`. So a batch is read only
/// after all copies into it have ended.
BatchOrder drain_then_write(BatchWork work);
/// True if the task is done, successfully or not.
bool is_done(Task& writing);

/// A part of a file that was written. Parts follow each other in the file.
struct WrittenPart {
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;  ///< crc32_of() the bytes
};
/// Reads the file part by part into `room`, which has room for each of them. Throws IO unless the
/// file consists of exactly these parts.
void confirm_parts(Store& store, const std::string& path, std::span<const WrittenPart> parts,
                   MutableByteSpan room);

struct StageSeams {
  BatchOrder (*order)(BatchWork work) = drain_then_write;
  /// True if the memory of a batch may be reused. `writing` is the task that writes the batch.
  bool (*free_again)(Task& writing) = is_done;
  /// Confirms that a file has the content that was written to it.
  void (*confirm)(Store& store, const std::string& path, std::span<const WrittenPart> parts,
                  MutableByteSpan room) = confirm_parts;
};

}  // namespace reprise
