#pragma once
// The exception for a document that cannot be read.

#include <stdexcept>

namespace reprise::reports {

/// The message has the form "FILE: scenarios[3].ranks[0].rank: expected an integer, found true".
class ReadError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace reprise::reports
