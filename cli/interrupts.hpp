#pragma once
// Records SIGINT and SIGTERM until somebody asks. A second signal ends the program at once.

namespace reprise::cli {

class Interrupts {
 public:
  /// Handles both signals as long as the object lives; there is only one at a time.
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// True once a signal has arrived.
  static bool came();
};

}  // namespace reprise::cli
