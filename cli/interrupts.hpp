#pragma once
// Catches SIGINT and SIGTERM, so that a long operation can check whether one has arrived and stop
// cleanly. A second signal ends the program at once.

namespace reprise::cli {

class Interrupts {
 public:
  /// Handles both signals while the object lives. Only one such object may exist at a time.
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// True once a signal has arrived.
  static bool came();
};

}  // namespace reprise::cli
