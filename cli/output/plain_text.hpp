#pragma once
// Filters all text that the program writes to a terminal, a pipe or a file.

#include <ostream>
#include <streambuf>
#include <string>

namespace reprise::cli {

/// A stream buffer that passes each line through printable() before it forwards the line to another
/// stream. An incomplete line waits for its line break or a flush.
class PlainText final : public std::streambuf {
 public:
  /// Forwards text to `sink`, which must outlive this buffer.
  explicit PlainText(std::ostream& sink) : sink_(sink) {}

  /// True once the buffer has received any text, whether forwarded or still waiting.
  bool used() const { return used_; }

 protected:
  int_type overflow(int_type letter) override;
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int sync() override;

 private:
  bool pass_on(std::size_t count);

  std::ostream& sink_;
  std::string pending_;
  bool used_ = false;
};

}  // namespace reprise::cli
