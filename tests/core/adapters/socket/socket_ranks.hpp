#pragma once
// Ranks over TCP on this host, as threads of the test's process or as processes.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/adapters/socket/socket.hpp"
#include "reprise/error.hpp"
#include "reprise/socket.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise::contracts {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Keys and values in the memory of this process.
class MemoryKeys {
 public:
  KeyStore store() {
    return {.put =
                [this](const std::string& key, const std::string& value) {
                  const std::scoped_lock lock(mutex_);
                  values_[key] = value;
                },
            .get = [this](const std::string& key) -> std::optional<std::string> {
              const std::scoped_lock lock(mutex_);
              const auto found = values_.find(key);
              return found == values_.end() ? std::nullopt : std::optional(found->second);
            }};
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

/// An address of this host where nobody listens but who is told of it.
struct FreeAddress {
  explicit FreeAddress(const std::string& host = "127.0.0.1") : holds(hold_port(host)) {}
  Socket holds;
  std::string text = own_address(holds);
};

/// Runs `body` for each number below `count`, each on a thread of its own. Returns the error of
/// each.
inline std::vector<std::optional<Error>> errors_of(std::int32_t count,
                                                   const std::function<void(std::int32_t)>& body) {
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (std::int32_t i = 0; i < count; ++i) {
    threads.emplace_back(
        [&, i] { errors[static_cast<std::size_t>(i)] = error_of([&] { body(i); }); });
  }
  for (auto& thread : threads) thread.join();
  return errors;
}

inline void expect_none(const std::vector<std::optional<Error>>& errors) {
  for (std::size_t i = 0; i < errors.size(); ++i) {
    EXPECT_FALSE(errors[i]) << "rank " << i << ": " << errors[i]->what();
  }
}

enum class MeetBy { kAddress, kAddress6, kStore };

/// False on a machine without IPv6, as many containers are.
inline bool has_ipv6() {
  return !code_of([] { listen_at({"::1", "0"}); });
}

inline std::string host_of(MeetBy by) { return by == MeetBy::kAddress6 ? "::1" : "127.0.0.1"; }

/// Runs `body` on `size` ranks, each on a thread of its own. Returns the error of each.
inline std::vector<std::optional<Error>> run_sockets(
    std::int32_t size, MeetBy by, const std::function<void(Fabric&)>& body,
    std::chrono::nanoseconds deadline = seconds(60)) {
  MemoryKeys keys;
  const FreeAddress address(host_of(by));
  return errors_of(size, [&](std::int32_t rank) {
    SocketOptions options{.rank = rank,
                          .size = size,
                          .address = by == MeetBy::kStore ? "" : address.text,
                          .bind = host_of(by),
                          .deadline = seconds(60)};
    if (by == MeetBy::kStore) options.store = keys.store();
    body(*socket_fabric(options, deadline));
  });
}

}  // namespace reprise::contracts
