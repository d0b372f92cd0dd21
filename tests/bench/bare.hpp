#pragma once
// Makes the system calls of a load or a save, and the passes over memory that it needs, in loops
// that do nothing else. Where a limit leaves some of these out, the rate of this loop shows how
// much of the distance to the limit is the engine's.

#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "core/load/load.hpp"

namespace reprise::bench {

/// The reads and copies for which a load asked its ports.
class BareCalls {
 public:
  /// Loads each of `into` from the store at `directory`, on one thread, and remembers what that
  /// takes. All leaves lie in `memory`, which must outlive this object.
  BareCalls(const std::string& directory, std::span<StateDict> into, const LoadOptions& options,
            MutableByteSpan memory);

  /// Reads and copies the same again. If the load verified checksums, also computes the CRC-32 of
  /// what is read into the leaves.
  void load();
  /// Writes new files of the same size into the new folder `directory`: the leaves by the reads the
  /// other way round, and any bytes around them. The threads share the calls.
  void save(const std::string& directory, int threads);

  struct Count {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
  };
  /// Returns how often the load read files whose names end like this, and how many bytes.
  Count count(const std::string& ending) const;

 private:
  class Device;
  class Store;

  /// A read, or a copy if it has no parts.
  struct Step {
    std::uint64_t offset = 0;
    std::uint32_t file = 0;
    std::uint32_t first = 0;  ///< index of the first of its parts, or of the copy
    std::uint32_t parts = 0;
  };

  bool keeps(const std::byte* address) const;
  void add_read(std::uint32_t file, std::uint64_t offset, std::span<const MutableByteSpan> parts);
  std::span<const iovec> parts_of(const Step& step) const {
    return std::span(parts_).subspan(step.first, step.parts);
  }
  void check(const Step& step) const;

  MutableByteSpan memory_;
  bool checked_;
  std::vector<StagingMemory> staging_;
  std::vector<MutableByteSpan> kept_;  ///< memory that is the same as in the load
  Bytes other_;                        ///< stands for all other memory
  std::vector<std::string> files_;     ///< in the order in which they were opened
  std::vector<Step> steps_;
  std::vector<iovec> parts_;
  std::vector<ScatterCopy> copies_;
};

}  // namespace reprise::bench
