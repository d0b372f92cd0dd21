#pragma once
// Memory that a file asked for and that is not there: no damage of the file, so it is no Error.

#include <cstdint>
#include <new>
#include <string>

#include "reprise/error.hpp"

namespace reprise {

class OutOfMemory final : public std::bad_alloc {
 public:
  OutOfMemory(std::string file, std::uint64_t bytes);

  /// Path as the user knows it.
  const std::string& file() const { return file_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string file_;
  std::string message_;
};

/// Returns LIMIT for a program that ends by it: with the file that is known, or else with what it
/// was working on.
Error limit_from(const std::bad_alloc& caught, const std::string& working_on);

/// Does `work`, which takes in so many bytes of a file. OutOfMemory where it finds no memory.
template <class Work>
auto taken_in(const std::string& file, std::uint64_t bytes, const Work& work) {
  try {
    return work();
  } catch (const OutOfMemory&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(file, bytes);
  }
}

}  // namespace reprise
