#pragma once
// The exception for a document that cannot be read.

#include <stdexcept>

namespace reprise::reports {

/// The message has the form "FILE: scenarios[3].ranks[0].rank: expected an integer, found true".
class ReadError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The document is of a newer version than this program reads.
class NewerError : public ReadError {
 public:
  using ReadError::ReadError;
};

/// Says what to do with a report, or a baseline, that an old program wrote.
inline constexpr const char* kReadOlder = "run the lane again with this program";
/// Says what to do with a report that a newer program wrote.
inline constexpr const char* kReadNewer =
    "read it with that version, or run the lane again with this one";

}  // namespace reprise::reports
