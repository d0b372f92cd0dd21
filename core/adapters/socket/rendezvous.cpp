#include "core/adapters/socket/rendezvous.hpp"

#include <sys/random.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "core/base/caught.hpp"
#include "core/base/hash.hpp"

namespace reprise {
namespace {

using std::chrono::milliseconds;

/// Pause before asking again for what was not there.
constexpr auto kPause = milliseconds(20);
/// Longest time for one attempt to connect, and for an answer to be taken.
constexpr auto kAttempt = std::chrono::seconds(5);

std::string new_key() {
  std::string key;
  for (int i = 0; i < 2; ++i) {
    std::uint64_t word = 0;
    if (::getrandom(&word, sizeof word, 0) != sizeof word) {
      throw Error(Code::kIo, "getrandom: " + error_text(errno));
    }
    key += hex(word);
  }
  return key;
}

Hello hello_of(const SocketOptions& options, const Reception& reception) {
  return {.job = options.job,
          .size = options.size,
          .rank = {options.rank},
          .address = reception.address()};
}

/// Longest time for which a rank waits without asking if the job is to stop.
constexpr auto kLook = milliseconds(100);

/// Says when a rank stops waiting for the others: at its deadline, or when the job is told to stop.
class Patience {
 public:
  Patience(Instant end, const std::function<bool()>& interrupted)
      : end_(end), interrupted_(interrupted) {}

  /// Returns false if the time is over. Throws INTERRUPTED if the job is to stop.
  bool lasts() const {
    if (interrupted_ && interrupted_()) {
      throw Error(Code::kInterrupted, "told to stop while waiting for other ranks to join");
    }
    return std::chrono::steady_clock::now() < end_;
  }
  /// Pauses, and then returns what lasts() does.
  bool pause() const {
    std::this_thread::sleep_until(std::min(from_now(kPause), end_));
    return lasts();
  }
  Instant end() const { return end_; }
  /// Returns when to ask again.
  Instant next_look() const { return std::min(end_, from_now(kLook)); }

 private:
  Instant end_;
  const std::function<bool()>& interrupted_;
};

/// Sends all of it, or gives up after a while.
void send_all(const Socket& socket, FrameQueue& queue) {
  const Instant end = from_now(kAttempt);
  while (queue.send(socket) == 0 && !queue.empty()) {
    pollfd ready = {.fd = socket.get(), .events = POLLOUT, .revents = 0};
    if (!poll_until({&ready, 1}, end)) return;
  }
}

void send_text(const Socket& socket, FrameKind kind, const std::string& text) {
  FrameQueue queue;
  const auto body = std::make_shared<Bytes>(to_bytes(text));
  queue.put({.kind = kind, .size = body->size()}, body);
  send_all(socket, queue);
}

// ---------------------------------------------------------------- at an address: rank 0

/// Rank 0 keeps a connection to each rank until all have come.
class Gathering {
 public:
  Gathering(const Hello& own, Reception& reception) : own_(own), reception_(reception) {
    addresses_[own.rank.value] = own.address;
  }

  Session run(const Patience& patience) {
    while (addresses_.size() < static_cast<std::size_t>(own_.size)) {
      if (!patience.lasts()) throw Error(Code::kDeadline, missing());
      wait(patience);
      for (auto& arrival : reception_.arrivals()) receive(std::move(arrival));
    }
    Session session{.key = new_key(), .addresses = {}};
    for (const auto& [rank, address] : addresses_) session.addresses.push_back(address);
    answer({.refused = {}, .session = session});
    return session;
  }

  void answer(const Answer& answer) {
    const std::string text = encode(answer);
    for (const auto& [rank, socket] : waiting_) send_text(socket, FrameKind::kAnswer, text);
  }

 private:
  /// Waits until somebody comes. Who has come says nothing more, so what can be read from it is its
  /// end.
  void wait(const Patience& patience) const {
    std::vector<pollfd> watched;
    for (const auto& [rank, socket] : waiting_) {
      watched.push_back({.fd = socket.get(), .events = POLLIN, .revents = 0});
    }
    reception_.watch(watched);
    poll_until(watched, patience.next_look());  // guests that say nothing are looked at then
    auto one = watched.begin();
    for (const auto& [rank, socket] : waiting_) {
      if ((one++)->revents == 0) continue;
      throw Error(Code::kPeerFailed,
                  "rank " + std::to_string(rank) + " exited before all ranks had joined");
    }
  }

  std::string missing() const {
    std::ostringstream text;
    text << "the job has " << own_.size << " ranks; these did not join in time:";
    for (std::int32_t rank = 0; rank < own_.size; ++rank) {
      if (!addresses_.contains(rank)) text << ' ' << rank;
    }
    const std::string others = reception_.turned_away();
    if (!others.empty()) text << "; rejected: " << others;
    return text.str();
  }

  void receive(Arrival arrival) {
    std::optional<Error> refused = refusal_of(arrival.hello, own_, arrival.from);
    const std::int32_t rank = arrival.hello.rank.value;
    if (!refused && arrival.kind != FrameKind::kJoin) {
      refused = Error(Code::kUsage, arrival.from + " arrived before all ranks had joined");
    }
    if (!refused && addresses_.contains(rank)) {
      refused = Error(Code::kLayoutMismatch, arrival.from + " is rank " + std::to_string(rank) +
                                                 ", and so is " + addresses_.at(rank) +
                                                 ": give each process its own rank");
    }
    if (refused) return reception_.refuse(arrival, *refused);
    addresses_[rank] = arrival.hello.address;
    waiting_[rank] = std::move(arrival.socket);
  }

  const Hello& own_;
  Reception& reception_;
  std::map<std::int32_t, std::string> addresses_;
  std::map<std::int32_t, Socket> waiting_;
};

Session gather(const Hello& own, Reception& reception, const Patience& patience) {
  Gathering gathering(own, reception);
  try {
    return gathering.run(patience);
  } catch (const std::exception& caught) {
    gathering.answer({.refused = error_from(caught), .session = {}});
    throw;
  }
}

// ---------------------------------------------------------------- at an address: other ranks

/// Returns a connection to the address, or one that is not open if nobody listens there.
Socket try_connect(const HostPort& place, Instant end) {
  std::vector<Socket> begun = connect_to(place, Names::kResolved);
  for (auto& socket : begun) {
    pollfd ready = {.fd = socket.get(), .events = POLLOUT, .revents = 0};
    if (!poll_until({&ready, 1}, std::min(end, from_now(kAttempt)))) continue;
    // On one host, a connection to a port where nobody listens may get that very port as its own,
    // and is then connected to itself.
    if (connect_result(socket) == 0 && !has_port_of(socket, place)) return std::move(socket);
  }
  return {};
}

Answer receive_answer(const Socket& socket, const std::string& where, const Patience& patience) {
  FrameReader reader;
  for (;;) {
    switch (reader.read(socket)) {
      case FrameReader::State::kWaiting: {
        pollfd ready = {.fd = socket.get(), .events = POLLIN, .revents = 0};
        poll_until({&ready, 1}, patience.next_look());
        if (patience.lasts()) continue;
        throw Error(Code::kDeadline, "rank 0 at " + where +
                                         " did not answer in time; it is waiting for other ranks");
      }
      case FrameReader::State::kEnded:
        throw Error(Code::kPeerFailed,
                    "rank 0 at " + where + " exited before all ranks had joined");
      case FrameReader::State::kFrame: {
        const Frame frame = reader.take();
        auto answer = decode_answer(as_text(frame.body));
        if (frame.header.kind == FrameKind::kAnswer && answer) return std::move(*answer);
        break;
      }
      case FrameReader::State::kGarbled:
        break;
    }
    throw Error(Code::kUsage, "what answers at " + where + " is not a rank of Reprise");
  }
}

Answer join(const Hello& own, const std::string& where, const Patience& patience) {
  const HostPort place = host_port_of(where);
  for (;;) {
    const Socket socket = try_connect(place, patience.end());
    if (socket.is_open()) {
      send_text(socket, FrameKind::kJoin, encode(own));
      return receive_answer(socket, where, patience);
    }
    if (!patience.pause()) throw Error(Code::kDeadline, "rank 0 does not listen at " + where);
  }
}

// ---------------------------------------------------------------- by a store of keys

std::string take(const KeyStore& store, const std::string& key, const std::string& what,
                 const Patience& patience) {
  for (;;) {
    if (auto value = store.get(key)) return std::move(*value);
    if (!patience.pause()) throw Error(Code::kDeadline, what + " did not join in time");
  }
}

Answer answer_from(const Hello& own, const KeyStore& store, const std::string& prefix,
                   const Patience& patience) {
  Answer answer{.refused = {}, .session = {.key = new_key(), .addresses = {}}};
  try {
    for (std::int32_t rank = 0; rank < own.size; ++rank) {
      const std::string name = "rank " + std::to_string(rank);
      const auto hello = decode_hello(take(store, prefix + std::to_string(rank), name, patience));
      if (!hello) {
        throw Error(Code::kUsage, "the store has something else in the place of " + name);
      }
      const auto refused = refusal_of(*hello, own, hello->address);
      if (refused) throw Error(*refused);
      answer.session.addresses.push_back(hello->address);
    }
  } catch (const std::exception& caught) {
    answer.refused = error_from(caught);
  }
  return answer;
}

/// Each rank leaves its hello. Rank 0 takes them all and leaves one answer for all.
Answer meet_by(const KeyStore& store, const Hello& own, const Patience& patience) {
  const std::string prefix = "reprise/" + own.job + "/";
  store.put(prefix + std::to_string(own.rank.value), encode(own));
  if (own.rank == GlobalRank{0}) {
    Answer answer = answer_from(own, store, prefix, patience);
    store.put(prefix + "answer", encode(answer));
    return answer;
  }
  auto answer = decode_answer(take(store, prefix + "answer", "the answer of rank 0", patience));
  if (!answer)
    throw Error(Code::kUsage, "the store has something else in the place of rank 0's answer");
  return std::move(*answer);
}

}  // namespace

Session meet(const SocketOptions& options, Reception& reception, Instant end) {
  const Hello own = hello_of(options, reception);
  const Patience patience(end, options.interrupted);
  const bool by_address = !options.address.empty();
  if (by_address && options.rank == 0) return gather(own, reception, patience);
  Answer answer =
      by_address ? join(own, options.address, patience) : meet_by(options.store, own, patience);
  if (answer.refused) throw Error(*answer.refused);
  const auto& addresses = answer.session.addresses;
  if (addresses.size() != static_cast<std::size_t>(own.size)) {
    throw Error(Code::kUsage, "the list of ranks that rank 0 sent is incomplete");
  }
  const std::string& listed = addresses[static_cast<std::size_t>(options.rank)];
  if (listed != own.address) {
    throw Error(Code::kLayoutMismatch, own.address + " is rank " + std::to_string(options.rank) +
                                           ", and so is " + listed +
                                           ": give each process its own rank");
  }
  return std::move(answer.session);
}

}  // namespace reprise
