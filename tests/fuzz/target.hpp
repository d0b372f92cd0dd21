#pragma once
// Defines fuzz targets. A target consists of a function that reads untrusted bytes, and of seeds:
// valid inputs for the function, made from real files.

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise::fuzz {

/// Tells whether a reader refused or accepted an input. Readers should refuse nearly all fuzzed
/// inputs and accept all real files.
enum class Acceptance { kRefused, kAccepted };

struct Seed {
  std::string name;  ///< where the bytes came from; used in messages only
  Bytes bytes;
};

/// A fuzz target. Each source file defines one as a static object. All targets of a program form a
/// linked list.
class Target {
 public:
  using Run = Acceptance (*)(ByteSpan input);
  using Seeds = std::vector<Seed> (*)();

  /// Creates a target. The function `does` runs one input; it reports a finding by throwing Broken,
  /// crashing or hanging, and in no other way.
  Target(const char* called, Run does, Seeds begins_with) noexcept;

  const char* name() const { return name_; }
  Acceptance run(ByteSpan input) const { return run_(input); }
  std::vector<Seed> seeds() const { return seeds_(); }

  static const Target* first();
  const Target* next() const { return next_; }

 private:
  const char* name_;
  Run run_;
  Seeds seeds_;
  const Target* next_;
};

/// A finding: a reader broke a promise.
class Broken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};
void promise(bool kept, const std::string& what);

/// The file name and the offset that a reader is given for the input.
inline constexpr const char* kFile = "fuzzed";
inline constexpr std::uint64_t kBegin = 1000;
inline ErrorPlace input_place() { return {.file = kFile, .offset = kBegin}; }

/// Checks three properties of the error with which a reader refused an input: it names the file,
/// its code does not mean a defect of our own code, and its offset, if any, lies in the file.
/// `size` is the number of bytes from kBegin to the end of the file; 0 skips the check of the
/// offset.
void check_refusal(const Error& error, std::size_t size);

/// Returns the result of `read`; nothing if `read` refuses the input with a proper error.
template <class Read>
auto read_or_refuse(std::size_t size, Read&& read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    check_refusal(error, size);
    return std::nullopt;
  }
}

}  // namespace reprise::fuzz
