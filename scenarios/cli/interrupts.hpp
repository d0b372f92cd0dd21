#pragma once
// SIGINT and SIGTERM as a question: has one come? A second one ends the program at once.

namespace reprise::cli {

class Interrupts {
 public:
  /// Takes both signals for as long as it lives; there is one at a time.
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// True once a signal has come.
  static bool came();
};

}  // namespace reprise::cli
