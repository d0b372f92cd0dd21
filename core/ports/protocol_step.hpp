#pragma once
// A named step of a protocol that changes a store.

#include <functional>
#include <string_view>

namespace reprise {

/// One step of the commit protocol, of retention, or of the cleanup after a crash.
struct ProtocolStep {
  std::string_view name;
  std::function<void()> run;
};

}  // namespace reprise
