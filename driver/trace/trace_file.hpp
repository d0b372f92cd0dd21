#pragma once
// A file to which scenarios add their packets or lines, from several threads. The file has its name
// only when it is complete.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/adapters/posix/posix_store.hpp"
#include "reprise/store.hpp"

namespace reprise::driver {

enum class TraceForm : std::uint8_t {
  kPackets,  ///< a trace for Perfetto
  kLines,    ///< a line for each event
};
/// Returns the form that a trace has by its name: lines if that ends in ".txt".
TraceForm trace_form_of(const std::string& path);

class TraceFile {
 public:
  /// Creates a file beside `path`. Throws IO, naming the file, if that can't be done; USAGE if
  /// there is a directory or a device at `path`.
  explicit TraceFile(const std::string& path);
  /// Removes the file unless finish() was called.
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  TraceForm form() const { return trace_form_of(name_); }
  /// Adds the packets or lines of scenario `number`, from 0. Each number is added once, in any
  /// order; in the file they are in order. Only those are held in memory that others still have to
  /// precede.
  void add(std::size_t number, std::string packets);
  /// Gives the file its name.
  void finish();

 private:
  std::string name_;
  std::string beside_;
  PosixStore store_;
  std::mutex mutex_;
  std::unique_ptr<WriteFile> file_;
  std::map<std::size_t, std::string> waiting_;
  std::size_t next_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace reprise::driver
