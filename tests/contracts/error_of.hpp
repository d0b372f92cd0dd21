#pragma once
// Returns the Error that a call throws, for tests.

#include <optional>

#include "reprise/error.hpp"

namespace reprise::contracts {

/// Returns nothing if the call throws nothing. Exceptions other than Error pass through.
template <class Call>
std::optional<Error> error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

template <class Call>
std::optional<Code> code_of(Call&& call) {
  const auto error = error_of(call);
  return error ? std::optional(error->code()) : std::nullopt;
}

}  // namespace reprise::contracts
