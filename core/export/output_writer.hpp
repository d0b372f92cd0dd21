#pragma once
// Writes the files of an export on all threads.

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/checkpoint/batches.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/checkpoint/earliest_failure.hpp"
#include "core/checkpoint/piece_reader.hpp"
#include "core/export/export_form.hpp"
#include "core/export/mapped_tensor.hpp"
#include "reprise/ports.hpp"
#include "reprise/store.hpp"

namespace reprise {

class OutputWriter {
 public:
  /// All arguments must outlive this object. Each thread has a reader of its own.
  OutputWriter(const std::vector<MappedTensor>& tensors, const std::vector<OutputFile>& files,
               std::vector<std::unique_ptr<PieceReader>>& readers, ByteProgress& progress);

  /// Writes all files. `paths` has the path of each. `background` syncs and closes files that are
  /// written. Once a file can't be synced, no later one is written, and wait() throws.
  void write(Store& store, const std::vector<std::string>& paths, Tasks& tasks, Tasks& background);
  /// Waits until all files would survive a power cut. Throws the error of the first file that would
  /// not.
  void wait();

 private:
  /// A file while it is written.
  struct Open {
    std::mutex writing;
    std::shared_ptr<WriteFile> out;
    std::size_t batches_left = 0;
  };
  /// A part, as a tensor of its own.
  struct Part {
    std::uint32_t file = 0;
    std::uint64_t begin = 0;
    MappedTensor tensor;
    std::size_t first_batch = 0;
  };
  class Worker;

  void finish(std::size_t file, Tasks& background);
  std::vector<std::uint32_t> checksums_of(std::size_t file) const;

  const std::vector<OutputFile>& files_;
  std::vector<std::unique_ptr<PieceReader>>& readers_;
  ByteProgress& progress_;
  std::vector<Part> parts_;
  std::vector<Batch> batches_;              ///< of parts
  std::vector<std::uint32_t> checksums_;    ///< of batches
  std::vector<std::size_t> first_part_of_;  ///< of each file
  std::vector<std::unique_ptr<Open>> open_;
  EarliestFailure unsynced_;  ///< by file; no later file is written any more
  std::mutex syncing_;
  std::deque<std::shared_ptr<Task>> syncs_;  ///< of files that are written, oldest first
};

}  // namespace reprise
