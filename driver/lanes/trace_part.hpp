#pragma once
// Writes and reads the file that a rank of a lane with real processes leaves for the trace of its
// life. It has a line for each thing that the rank began, if that goes on for a while, and for each
// thing that is over. So if the rank is killed or hangs, its file tells in what.

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

/// Writes such a file, line by line. Calls must not overlap. Lines that can't be written, because
/// the disk is full, are missing.
class TracePart {
 public:
  /// Throws IO if the file can't be made.
  explicit TracePart(const std::string& file);

  /// Adds a slice as sim::Recorder::Sink gets it: one that has begun, or one that is over.
  void begin(std::uint64_t number, const sim::Slice& slice) { add("begun", number, slice); }
  void add(std::uint64_t number, const sim::Slice& slice) { add("over", number, slice); }
  void add(const sim::Instant& instant);

 private:
  void add(const char* state, std::uint64_t number, const sim::Slice& slice);
  void write(const std::string& line);

  std::ofstream out_;
};

/// Reads what the ranks of a life left, and returns it as one recording, in which the first thing
/// that a rank did is at 0. The records of the ranks say how those ended that could not tell it
/// themselves; what these had begun ends with them, cut. Of a rank that hung, that is at
/// `ended_ns`, the time since 1970 at which the launcher had ended, and of another one when it told
/// the last thing. A rank that left nothing did nothing. If a line can't be read, the rest of that
/// file is left out, and an instant says so; only the last line may be incomplete. If there are
/// more than `slices_max` slices, those that ended first are left out.
sim::Recording merged_parts(const std::string& records, const std::vector<RankRecord>& ranks,
                            std::uint64_t ended_ns,
                            std::size_t slices_max = sim::Recorder::kSlicesMax);

}  // namespace reprise::driver
