#pragma once
// Lets perf record the measured work of a benchmark without its limits and preparations.

namespace reprise::bench {

/// While it lives, perf records this process. REPRISE_PERF=CONTROL,ACK names the two pipes that
/// `perf record --delay=-1 --control=fifo:CONTROL,ACK` listens to; without it this does nothing.
/// Ends the program if perf does not answer.
class PerfRecord {
 public:
  PerfRecord();
  ~PerfRecord();
  PerfRecord(const PerfRecord&) = delete;
  PerfRecord& operator=(const PerfRecord&) = delete;
};

}  // namespace reprise::bench
