#pragma once
// Catches SIGINT, SIGTERM and SIGHUP, so that a long operation can check whether one has arrived
// and stop cleanly. A second signal ends the program at once.

#include <string>

namespace reprise::cli {

/// Returns the line for a user who interrupted a run that was to add to a report or write a file.
/// Empty if there is no such place.
std::string left_as_it_was(const std::string& place);

class Interrupts {
 public:
  /// Handles these signals while the object lives; SIGHUP stays ignored under nohup. Only one such
  /// object may exist at a time.
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// True once a signal has arrived.
  static bool came();
};

}  // namespace reprise::cli
