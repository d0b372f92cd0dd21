#pragma once
// A fuzz target: a function of untrusted bytes, and its real seeds.

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise::fuzz {

/// Nearly all inputs should be refused, real ones accepted.
enum class Acceptance { kRefused, kAccepted };

struct Seed {
  std::string name;  ///< source, for people
  Bytes bytes;
};

/// Each is one static object in its file; all targets linked into a program form a list.
class Target {
 public:
  using Run = Acceptance (*)(ByteSpan input);
  using Seeds = std::vector<Seed> (*)();

  /// `does` reports a finding only by Broken, a crash or a hang.
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

/// A finding: the readers break a promise.
class Broken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};
void promise(bool kept, const std::string& what);

/// Pretended file of the inputs, and their offset in it.
inline constexpr const char* kFile = "fuzzed";
inline constexpr std::uint64_t kBegin = 1000;
inline ErrorPlace input_place() { return {.file = kFile, .offset = kBegin}; }

/// Checks that a refusal names the file, an offset (if any) in it, and a code about the input.
/// `size`: bytes of the file from kBegin on; 0: does not check offsets.
void check_refusal(const Error& error, std::size_t size);

/// Returns the result of `read`; nothing if it refuses properly.
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
