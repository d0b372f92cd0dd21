#pragma once
// A fuzz target: what is done with untrusted bytes, and the real ones that it begins with.

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise::fuzz {

/// Refused is what should become of nearly all inputs, accepted of real ones.
enum class Outcome { kRefused, kAccepted };

struct Seed {
  std::string name;  ///< for people: where it is from
  Bytes bytes;
};

/// Each is one static object in its file; all that are linked into a program form a list.
class Target {
 public:
  using Run = Outcome (*)(ByteSpan input);
  using Seeds = std::vector<Seed> (*)();

  /// `does` ends in a Broken, a crash or a hang for a finding, and in nothing else.
  Target(const char* called, Run does, Seeds begins_with) noexcept;

  const char* name() const { return name_; }
  Outcome run(ByteSpan input) const { return run_(input); }
  std::vector<Seed> seeds() const { return seeds_(); }

  static const Target* first();
  const Target* next() const { return next_; }

 private:
  const char* name_;
  Run run_;
  Seeds seeds_;
  const Target* next_;
};

/// A finding: something does not hold that the readers promise.
class Broken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};
void promise(bool kept, const std::string& what);

/// The file that inputs pretend to be, and where in it they begin.
inline constexpr const char* kFile = "fuzzed";
inline constexpr std::uint64_t kBegin = 1000;
inline ErrorPlace input_place() { return {.file = kFile, .offset = kBegin}; }

/// A refusal names the file, an offset (if any) that lies in it, and a code that says something
/// about the input. `size`: bytes of the file from kBegin on, 0: offsets are not looked at.
void check_refusal(const Error& error, std::size_t size);

/// What `read` returns; nothing if it refuses as it should.
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
