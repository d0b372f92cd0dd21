#include "core/adapters/socket/links.hpp"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <span>
#include <utility>

#include "core/adapters/posix/own_descriptors.hpp"
#include "core/base/caught.hpp"

namespace reprise {
namespace {

using posix::OwnDescriptors;

/// After a rank has ended, the others wait so long for bytes that it sent before.
constexpr auto kGrace = std::chrono::milliseconds(200);
/// A wait asks once in this time if the job was told to stop.
constexpr auto kAsks = std::chrono::milliseconds(50);
/// A rank that was told to stop still waits so long for the others.
constexpr auto kStopsAfter = std::chrono::seconds(2);
/// Longest time to say goodbye.
constexpr auto kFarewell = std::chrono::seconds(2);
/// Bytes that may have arrived on a connection before the caller takes them. Then no more are read.
/// Ranks that make their calls in one order never wait for bytes behind those: what a rank waits
/// for was sent before what it takes later.
constexpr std::size_t kUnreadMax = std::size_t{1} << 26U;
/// A frame without bytes counts as so many.
constexpr std::size_t kFrameCost = 256;
/// Frames that are read from one connection before another one has its turn.
constexpr int kFramesAtOnce = 64;

}  // namespace

template <class Visit>
void Links::for_each_link(const Visit& visit) {
  for (auto* links : {&ahead_, &behind_}) {
    for (auto& [peer, link] : *links) {
      if (link.socket.is_open()) visit(link);
    }
  }
}

Links::Links(Hello own, std::vector<std::string> addresses, Reception reception)
    : own_(std::move(own)),
      addresses_(std::move(addresses)),
      forks_(OwnDescriptors::of_process().forks()),
      reception_(std::move(reception)),
      mover_(start_mover()) {}

Links::~Links() {
  {
    const std::scoped_lock lock(mutex_);
    leaves_ = from_now(kFarewell);
    for_each_link([](Link& link) { link.queue.put({.kind = FrameKind::kBye}); });
  }
  to_mover_.ring();
  mover_.join();
}

/// A forked child has a copy without the thread, and perhaps in the middle of a change: the child
/// leaves it alone.
std::shared_ptr<Links> Links::make(Hello own, std::vector<std::string> addresses,
                                   Reception reception) {
  return {new Links(std::move(own), std::move(addresses), std::move(reception)), [](Links* links) {
            if (links->forks_ == OwnDescriptors::of_process().forks()) delete links;
          }};
}

void Links::require_own_process() const {
  if (forks_ == OwnDescriptors::of_process().forks()) return;
  throw Error(Code::kUsage,
              "a forked child is not a rank of the job: only the process that joined the job is");
}

// ---------------------------------------------------------------- the caller's side

void Links::open(Channel channel, std::vector<GlobalRank> ahead) {
  require_own_process();
  const std::scoped_lock lock(mutex_);
  for (const auto peer : ahead) {
    if (!ahead_.contains(peer)) connect(peer);
  }
  lines_[channel].ahead = std::move(ahead);
  to_mover_.ring();
}

void Links::close(Channel channel) {
  if (forks_ != OwnDescriptors::of_process().forks()) return;
  const std::scoped_lock lock(mutex_);
  Line& line = lines_[channel];
  for (const auto& [peer, messages] : line.inbox) {
    for (const auto& message : messages) {
      behind_.at(peer).unread -= message.bytes.size() + kFrameCost;
    }
  }
  line.inbox.clear();
  line.closed = true;
  to_mover_.ring();
}

void Links::connect(GlobalRank peer) {
  const std::string& address = addresses_[static_cast<std::size_t>(peer.value)];
  std::vector<Socket> begun = connect_to(host_port_of(address), Names::kNumeric);
  Link& link = ahead_[peer];
  link.peer = peer;
  if (begun.empty()) return end(link, "can't be reached at " + address);
  link.socket = std::move(begun.front());
  link.connecting = true;
  const auto hello = std::make_shared<Bytes>(to_bytes(encode(own_)));
  link.queue.put({.kind = FrameKind::kLink, .size = hello->size()}, hello);
}

void Links::send(GlobalRank to, Channel channel, const CallId& call,
                 std::span<const SharedBytes> parts) {
  require_own_process();
  const std::scoped_lock lock(mutex_);
  Link& link = ahead_.at(to);
  if (!link.socket.is_open()) return;
  for (const auto& part : parts) {
    link.queue.put({.kind = FrameKind::kData,
                    .size = part->size(),
                    .channel = channel,
                    .call = call.what,
                    .sequence = call.sequence},
                   part);
  }
  write(link);
  if (!link.queue.empty()) to_mover_.ring();
}

std::optional<Links::Message> Links::take(GlobalRank from, Channel channel) {
  auto& messages = lines_[channel].inbox[from];
  if (messages.empty()) return std::nullopt;
  Message message = std::move(messages.front());
  messages.pop_front();
  Link& link = behind_.at(from);
  if (link.unread >= kUnreadMax) to_mover_.ring();
  link.unread -= message.bytes.size() + kFrameCost;
  return message;
}

Links::Message Links::receive(GlobalRank from, Channel channel, Instant end) {
  require_own_process();
  std::optional<Message> message;
  wait_until(
      [&] {
        message = take(from, channel);
        const auto link = behind_.find(from);
        if (!message && !failure_ && link != behind_.end() && link->second.left) {
          fail(from, "has left the job");
        }
        return message.has_value();
      },
      "rank " + std::to_string(from.value), end);
  return std::move(*message);
}

void Links::flush(Instant end) {
  wait_until(
      [this] {
        return std::ranges::all_of(ahead_, [](const auto& one) {
          return one.second.queue.empty() || !one.second.socket.is_open();
        });
      },
      "a rank that does not receive anything", end);
}

/// `done` is called with the mutex held.
void Links::wait_until(const std::function<bool()>& done, const std::string& whom, Instant end) {
  std::optional<Instant> told;  // when the job was told to stop
  for (;;) {
    Instant look = end;
    if (interrupted_) {
      look = std::min(look, from_now(kAsks));
      if (!told && interrupted_()) told = std::chrono::steady_clock::now();
    }
    {
      const std::scoped_lock lock(mutex_);
      waits_ = false;
      if (done()) return;
      const Instant now = std::chrono::steady_clock::now();
      if (failure_) look = std::min(look, failure_->noticed + kGrace);
      if (failure_ && now >= failure_->noticed + kGrace) throw Error(failure_->error);
      // Ranks that come soon hear of it in the next agreement, and all throw the same.
      if (told && now >= *told + kStopsAfter) {
        fail(own_.rank, "was told to stop while it waited for " + whom);
        throw Error(Code::kInterrupted, "the job was told to stop while it waited for " + whom);
      }
      if (now >= end) {
        throw Error(Code::kDeadline, "no answer in time; was waiting for " + whom +
                                         ", which is hanging, slow, or waiting for another rank");
      }
      waits_ = true;
      to_caller_.quiet();
    }
    pollfd bell = to_caller_.watched();
    poll_until({&bell, 1}, look);
  }
}

void Links::warn(Channel channel) {
  require_own_process();
  const std::scoped_lock lock(mutex_);
  pass_warning(channel, own_.rank);
  to_mover_.ring();
}

bool Links::warned(Channel channel) {
  require_own_process();
  const std::scoped_lock lock(mutex_);
  const auto& warners = lines_[channel].warners;
  return warners.size() > (warners.contains(own_.rank) ? 1U : 0U);
}

// ---------------------------------------------------------------- the mover

/// Signals are for the program's own threads.
std::thread Links::start_mover() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread mover([this] { move(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return mover;
}

void Links::move() {
  try {
    while (move_once()) {
    }
  } catch (const std::exception& caught) {
    const std::scoped_lock lock(mutex_);
    for_each_link([](Link& link) { link.socket.close(); });  // without goodbye: others notice
    fail(error_from(caught));
  }
}

bool Links::move_once() {
  struct Served {
    Link* link;
    bool ahead;
  };
  std::vector<Served> served;
  std::vector<pollfd> watched = {to_mover_.watched()};
  Instant look = from_now(std::chrono::seconds(1));  // at guests that say nothing
  {
    const std::scoped_lock lock(mutex_);
    if (leaves_) {
      if (has_left()) return false;
      look = std::min(look, *leaves_);
    }
    for (auto* links : {&ahead_, &behind_}) {
      for (auto& [peer, link] : *links) {
        if (!link.socket.is_open()) continue;
        const bool writes = link.connecting || !link.queue.empty();
        const int events = (link.unread < kUnreadMax ? POLLIN : 0) | (writes ? POLLOUT : 0);
        watched.push_back({link.socket.get(), static_cast<std::int16_t>(events), 0});
        served.push_back({&link, links == &ahead_});
      }
    }
    reception_.watch(watched);
  }
  const bool ready = poll_until(watched, look);
  const std::scoped_lock lock(mutex_);
  to_mover_.quiet();
  for (std::size_t i = 0; i < served.size(); ++i) {
    if (watched[i + 1].revents != 0) serve(*served[i].link, served[i].ahead);
  }
  const auto guests = std::span(watched).subspan(served.size() + 1);
  const auto came = [](const pollfd& one) { return one.revents != 0; };
  if (!ready || std::ranges::any_of(guests, came)) receive_arrivals();
  if (waits_) to_caller_.ring();
  return true;
}

/// True once all goodbyes are sent, or can't be.
bool Links::has_left() {
  bool waiting = false;
  for_each_link([&waiting](Link& link) { waiting = waiting || !link.queue.empty(); });
  return !waiting || std::chrono::steady_clock::now() >= *leaves_;
}

void Links::receive_arrivals() {
  for (auto& arrival : reception_.arrivals()) {
    Hello& hello = arrival.hello;
    const bool joins = arrival.kind == FrameKind::kJoin;
    if (joins) hello.key = own_.key;
    std::optional<Error> refused = refusal_of(hello, own_, arrival.from);
    const std::string who = arrival.from + " is rank " + std::to_string(hello.rank.value);
    if (!refused && joins) {
      refused =
          Error(Code::kUsage, who + " but is too late: all ranks of the job have already joined");
    }
    if (!refused && behind_.contains(hello.rank)) {
      refused = Error(Code::kLayoutMismatch, who + ", which is already connected");
    }
    if (refused) {
      reception_.refuse(arrival, *refused);
    } else {
      behind_[hello.rank] = {.peer = hello.rank, .socket = std::move(arrival.socket)};
    }
  }
}

void Links::serve(Link& link, bool ahead) {
  if (link.connecting) {
    const int error = connect_result(link.socket);
    if (error != 0) {
      const auto& address = addresses_[static_cast<std::size_t>(link.peer.value)];
      return end(link, "can't be reached at " + address + ": " + error_text(error));
    }
    link.connecting = false;
  }
  write(link);
  read(link, ahead);
}

void Links::write(Link& link) {
  if (link.connecting) return;
  // If the connection has failed, the queue is dropped; reading the connection shows why it failed.
  if (link.queue.send(link.socket) != 0) link.queue.clear();
}

void Links::read(Link& link, bool ahead) {
  for (int i = 0; i < kFramesAtOnce && link.socket.is_open(); ++i) {
    switch (link.reader.read(link.socket)) {
      case FrameReader::State::kWaiting:
        return;
      case FrameReader::State::kFrame:
        obey(link, link.reader.take(), ahead);
        break;
      case FrameReader::State::kEnded: {
        const int error = link.reader.error();
        return end(link, "has ended: its connection was closed" +
                             (error == 0 ? std::string() : ", " + error_text(error)));
      }
      case FrameReader::State::kGarbled:
        return end(link, "sent something that no rank of Reprise sends");
    }
  }
}

void Links::obey(Link& link, Frame frame, bool ahead) {
  const FrameHeader& header = frame.header;
  const GlobalRank named{static_cast<std::int32_t>(header.call)};
  const bool is_rank = header.call < static_cast<std::uint64_t>(own_.size);
  switch (header.kind) {
    case FrameKind::kData:
      if (ahead) break;
      return store(link, std::move(frame));
    case FrameKind::kWarn:
      if (is_rank) return pass_warning(header.channel, named);
      break;
    case FrameKind::kLost:
      if (is_rank) return fail(named, std::string(as_text(frame.body)));
      break;
    case FrameKind::kBye:
      link.left = true;
      link.queue.clear();
      return link.socket.close();
    case FrameKind::kAnswer:
      if (const auto answer = decode_answer(as_text(frame.body)); answer && answer->refused) {
        fail(*answer->refused);
        return link.socket.close();
      }
      break;
    case FrameKind::kJoin:
    case FrameKind::kLink:
      break;
  }
  end(link, "sent something that no rank of Reprise sends");
}

void Links::store(Link& link, Frame frame) {
  Line& line = lines_[frame.header.channel];
  if (line.closed) return;
  link.unread += frame.body.size() + kFrameCost;
  line.inbox[link.peer].push_back(
      {.call = {.what = frame.header.call, .sequence = frame.header.sequence},
       .bytes = std::move(frame.body)});
}

void Links::pass_warning(Channel channel, GlobalRank warner) {
  const auto line = lines_.find(channel);  // nobody warns before all members have opened theirs
  if (line == lines_.end() || !line->second.warners.insert(warner).second) return;
  for (const auto peer : line->second.ahead) {
    ahead_.at(peer).queue.put({.kind = FrameKind::kWarn,
                               .channel = channel,
                               .call = static_cast<std::uint64_t>(warner.value)});
  }
}

/// Closes a connection whose other side has not said goodbye.
void Links::end(Link& link, const std::string& how) {
  link.queue.clear();
  link.socket.close();
  fail(link.peer, how);
}

void Links::fail(GlobalRank lost, const std::string& how) {
  if (failure_ || leaves_) return;
  std::string text = how.substr(0, kHelloBytesMax);
  fail(Error(Code::kPeerFailed, "rank " + std::to_string(lost.value) + " " + text));
  const auto body = std::make_shared<Bytes>(to_bytes(text));
  for_each_link([&](Link& link) {
    link.queue.put({.kind = FrameKind::kLost,
                    .size = body->size(),
                    .call = static_cast<std::uint64_t>(lost.value)},
                   body);
  });
  to_mover_.ring();
}

void Links::fail(Error error) {
  if (!failure_) failure_ = {std::move(error), std::chrono::steady_clock::now()};
  to_caller_.ring();
}

}  // namespace reprise
