#pragma once
// The edge of the program: what goes to a terminal, a pipe or a file by way of a stream.

#include <ostream>
#include <streambuf>
#include <string>

namespace reprise::cli {

/// Passes lines on to another stream as printable() writes them out, whatever a key or a path
/// holds. What has no line break yet waits for one, or for a flush.
class PlainText final : public std::streambuf {
 public:
  /// `sink` is borrowed.
  explicit PlainText(std::ostream& sink) : sink_(sink) {}

  /// True once anything was passed on or waits.
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
