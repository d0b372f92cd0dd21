#pragma once
// The connections of one rank, and the thread that moves bytes over them.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/adapters/socket/frame.hpp"
#include "core/adapters/socket/hello.hpp"
#include "core/adapters/socket/reception.hpp"
#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise {

/// Number of a communicator, the same on all its members.
using Channel = std::uint64_t;

/// Identifies the call to which bytes of a member belong.
struct CallId {
  std::uint64_t what = 0;  ///< the operation and its arguments
  std::uint64_t sequence = 0;

  friend bool operator==(const CallId&, const CallId&) = default;
};

/// Sends bytes to some ranks and receives them from others, by connections that are made when they
/// are needed and stay. A connection carries data one way only, from the rank that made it.
///
/// If a connection ends and the rank at its other side has not said goodbye, that rank has ended.
/// The first rank to notice tells all ranks that it is connected to, and they tell theirs. From
/// then on, every wait ends with PEER_FAILED after a moment for what is on its way.
///
/// One thread at a time may make calls. The thread of this object, the mover, is the only one that
/// receives, accepts and closes. In a forked child every call throws USAGE.
class Links {
 public:
  struct Message {
    CallId call;
    Bytes bytes;
  };

  /// `own` is this rank as others know it, with the session's key. When the last owner is gone,
  /// says goodbye and closes the connections. In a forked child it does nothing.
  static std::shared_ptr<Links> make(Hello own, std::vector<std::string> addresses,
                                     Reception reception);
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  /// Begins with a communicator, and connects to the ranks `ahead`, to which it sends.
  void open(Channel channel, std::vector<GlobalRank> ahead);
  /// Drops what has arrived for a communicator and what will. Warnings still pass.
  void close(Channel channel);

  /// Sends one frame for each part, without waiting. Their bytes must not change until flush()
  /// returns.
  void send(GlobalRank to, Channel channel, const CallId& call, std::span<const SharedBytes> parts);
  /// Waits for the next bytes that a rank sent on a channel. Throws DEADLINE and PEER_FAILED; the
  /// messages name the rank, and the caller adds what it was doing.
  Message receive(GlobalRank from, Channel channel, Instant end);
  /// Waits until the system has all that was sent. Throws as receive() does.
  void flush(Instant end);

  /// From now on every wait asks `interrupted`, on the thread that waits. If that returns true and
  /// nothing comes for two seconds more, the wait throws INTERRUPTED, and this rank has ended for
  /// the others, who get PEER_FAILED. May be null.
  void ask(std::function<bool()> interrupted) { interrupted_ = std::move(interrupted); }

  /// Tells all members that this one has called warn().
  void warn(Channel channel);
  /// True if another member has called warn().
  bool warned(Channel channel);

 private:
  /// A connection to another rank.
  struct Link {
    GlobalRank peer;
    Socket socket;
    bool connecting = false;
    bool left = false;  ///< the peer has said goodbye
    FrameReader reader = FrameReader();
    FrameQueue queue = {};
    std::size_t unread = 0;  ///< bytes that have arrived and nobody has taken
  };
  /// The state of one communicator.
  struct Line {
    std::vector<GlobalRank> ahead;
    std::map<GlobalRank, std::deque<Message>> inbox = {};
    std::set<GlobalRank> warners = {};  ///< whose warnings were passed on
    bool closed = false;
  };
  /// A failure of the whole job, and when it was noticed.
  struct Failure {
    Error error;
    Instant noticed;
  };

  Links(Hello own, std::vector<std::string> addresses, Reception reception);
  ~Links();

  void require_own_process() const;
  void connect(GlobalRank peer);
  std::optional<Message> take(GlobalRank from, Channel channel);
  void wait_until(const std::function<bool()>& done, const std::string& whom, Instant end);

  std::thread start_mover();
  void move();
  bool move_once();
  bool has_left();
  void receive_arrivals();
  void serve(Link& link, bool ahead);
  void read(Link& link, bool ahead);
  void write(Link& link);
  void obey(Link& link, Frame frame, bool ahead);
  void store(Link& link, Frame frame);
  void pass_warning(Channel channel, GlobalRank warner);
  void end(Link& link, const std::string& how);
  void fail(GlobalRank lost, const std::string& how);
  void fail(Error error);
  template <class Visit>
  void for_each_link(const Visit& visit);

  const Hello own_;
  const std::vector<std::string> addresses_;
  const int forks_;                    ///< of the process that made this, see OwnDescriptors
  Reception reception_;                ///< only the mover uses it
  std::function<bool()> interrupted_;  ///< only the caller uses it; may be null
  Bell to_mover_;
  Bell to_caller_;
  std::mutex mutex_;                   ///< guards all below
  std::map<GlobalRank, Link> ahead_;   ///< connections that this rank made
  std::map<GlobalRank, Link> behind_;  ///< connections that others made
  std::map<Channel, Line> lines_;
  std::optional<Failure> failure_;
  bool waits_ = false;             ///< the caller waits
  std::optional<Instant> leaves_;  ///< when goodbyes that can't be sent are given up
  std::thread mover_;
};

}  // namespace reprise
