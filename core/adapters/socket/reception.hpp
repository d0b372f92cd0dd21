#pragma once
// Receives who connects to this rank, and hears who they are before anyone else deals with them.

#include <deque>
#include <string>
#include <vector>

#include "core/adapters/socket/frame.hpp"
#include "core/adapters/socket/hello.hpp"

namespace reprise {

/// A connection whose sender has said who it is. That may be untrue.
struct Arrival {
  Socket socket;
  FrameKind kind = FrameKind::kJoin;  ///< kJoin or kLink
  Hello hello;
  std::string from;  ///< "127.0.0.1:53312"
};

/// Who sends anything but a hello is dropped, and so is who sends nothing for a while. Nobody can
/// keep the others waiting.
class Reception {
 public:
  explicit Reception(Socket listener) : listener_(std::move(listener)) {}

  /// Returns "address:port" at which this rank listens.
  std::string address() const { return own_address(listener_); }
  /// Appends what to wait for before the next call of arrivals().
  void watch(std::vector<pollfd>& watched) const;
  /// Returns who has said who they are since the last call. Does not block.
  std::vector<Arrival> arrivals();
  /// Answers one that can't be part of the job, and closes the connection.
  void refuse(const Arrival& arrival, const Error& why);
  /// Returns who was refused or dropped, in words, for messages; empty if nobody was.
  std::string turned_away() const;

 private:
  struct Guest {
    Socket socket;
    std::string from;
    Instant leaves;
    FrameReader reader{kHelloBytesMax};
  };

  void accept_guests();
  void note(const std::string& who);

  Socket listener_;
  Instant rests_until_;  ///< while there is no room for another connection
  std::deque<Guest> guests_;
  std::deque<std::string> turned_away_;
};

}  // namespace reprise
