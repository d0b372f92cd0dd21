#pragma once
// Defines fuzz targets. A target consists of a function that takes untrusted bytes, and of real
// seeds for that function.

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise::fuzz {

/// The readers' reaction to an input. They should refuse nearly all inputs, and accept real ones.
enum class Acceptance { kRefused, kAccepted };

struct Seed {
  std::string name;  ///< where the bytes came from; used in messages only
  Bytes bytes;
};

/// A fuzz target. Each target's source file has one static object, and all objects of a program
/// form a list.
class Target {
 public:
  using Run = Acceptance (*)(ByteSpan input);
  using Seeds = std::vector<Seed> (*)();

  /// `does` runs one input. It reports a finding only by throwing Broken, crashing or hanging.
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

/// Readers are told that the input lies in this file, at this offset.
inline constexpr const char* kFile = "fuzzed";
inline constexpr std::uint64_t kBegin = 1000;
inline ErrorPlace input_place() { return {.file = kFile, .offset = kBegin}; }

/// Checks that a refusal names the file, that its code does not stand for an error in our own code,
/// and that its offset, if it has one, lies in the file. `size` is the number of the file's bytes
/// from kBegin on; 0 skips the check of the offset.
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
