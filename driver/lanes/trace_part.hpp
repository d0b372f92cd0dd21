#pragma once
// What a rank of a lane with real processes leaves for the trace of its life: a file with one line
// for each thing that it did, written when that thing is over. So if the rank is killed, its file
// has all that was over until then.

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "driver/record/record.hpp"
#include "sim/world/recorder.hpp"
#include "sim/world/recording.hpp"

namespace reprise::driver {

/// Returns the path of the file in which a rank leaves what it did.
std::string trace_part_file(const std::string& records, std::int32_t rank);

/// Writes such a file, line by line. Calls must not overlap. If the disk is full, lines are
/// missing; then the rank can't leave its record either, which is an error.
class TracePart {
 public:
  explicit TracePart(const std::string& file) : out_(file) {}

  void add(const sim::Slice& slice);
  void add(const sim::Instant& instant);

 private:
  void write(const std::string& line);

  std::ofstream out_;
};

/// Reads what the ranks of a life left, and returns it as one recording, in which the first thing
/// that a rank did is at 0. The records of the ranks say how those ended that could not tell it
/// themselves. A rank that left nothing did nothing. Throws TORN_FILE if a line can't be read; the
/// last one may be incomplete.
sim::Recording merged_parts(const std::string& records, const std::vector<RankRecord>& ranks,
                            std::size_t slices_max = sim::Recorder::kSlicesMax);

}  // namespace reprise::driver
