#pragma once
// Defines the exception for a file whose content does not fit in memory. The file is not damaged,
// so the exception is not an Error.

#include <cstdint>
#include <new>
#include <string>

#include "reprise/error.hpp"

namespace reprise {

class OutOfMemory final : public std::bad_alloc {
 public:
  OutOfMemory(std::string file, std::uint64_t bytes);

  /// Returns the path of the file as the user knows it.
  const std::string& file() const { return file_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string file_;
  std::string message_;
};

/// Returns a LIMIT error for a program that ends because memory ran out. The error contains the
/// path of the file if `caught` has it, and `working_on` otherwise.
Error limit_from(const std::bad_alloc& caught, const std::string& working_on);

/// Runs `work`, which reads `bytes` bytes of a file. Throws OutOfMemory if memory runs out.
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
