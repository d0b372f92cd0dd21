#include "core/adapters/socket/reception.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

namespace reprise {
namespace {

constexpr std::size_t kGuestsMax = 256;
/// Who connects without end keeps no others waiting.
constexpr int kAcceptsAtOnce = 64;
constexpr std::size_t kNotesMax = 4;
/// A rank says who it is as soon as it is connected.
constexpr auto kPatience = std::chrono::seconds(10);
/// Pause after a connection could not be accepted. Polling without one would not wait.
constexpr auto kRest = std::chrono::milliseconds(100);

}  // namespace

void Reception::watch(std::vector<pollfd>& watched) const {
  const bool rests = std::chrono::steady_clock::now() < rests_until_;
  watched.push_back({.fd = rests ? -1 : listener_.get(), .events = POLLIN, .revents = 0});
  for (const auto& guest : guests_) {
    watched.push_back({.fd = guest.socket.get(), .events = POLLIN, .revents = 0});
  }
}

void Reception::accept_guests() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    std::string from;
    Socket socket = accept_from(listener_, from);
    if (!socket.is_open()) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) rests_until_ = from_now(kRest);
      return;
    }
    guests_.push_back({.socket = std::move(socket), .from = from, .leaves = from_now(kPatience)});
    if (guests_.size() <= kGuestsMax) continue;
    note(guests_.front().from + " sent nothing");
    guests_.pop_front();
  }
}

std::vector<Arrival> Reception::arrivals() {
  accept_guests();
  std::vector<Arrival> arrived;
  const Instant now = std::chrono::steady_clock::now();
  std::erase_if(guests_, [&](Guest& guest) {
    const auto state = guest.reader.read(guest.socket);
    if (state == FrameReader::State::kWaiting) {
      if (now < guest.leaves) return false;
      note(guest.from + " sent nothing");
      return true;
    }
    if (state == FrameReader::State::kFrame) {
      const Frame frame = guest.reader.take();
      const FrameKind kind = frame.header.kind;
      auto hello = decode_hello(as_text(frame.body));
      if (hello && (kind == FrameKind::kJoin || kind == FrameKind::kLink)) {
        arrived.push_back({.socket = std::move(guest.socket),
                           .kind = kind,
                           .hello = std::move(*hello),
                           .from = guest.from});
        return true;
      }
    }
    note(guest.from + " is not a rank of Reprise");
    return true;
  });
  return arrived;
}

void Reception::refuse(const Arrival& arrival, const Error& why) {
  note(why.message());
  FrameQueue answer;
  const auto text =
      std::make_shared<Bytes>(to_bytes(encode(Answer{.refused = why, .session = {}})));
  answer.put({.kind = FrameKind::kAnswer, .size = text->size()}, text);
  static_cast<void>(answer.send(arrival.socket));  // it fits into the system's buffer
}

void Reception::note(const std::string& who) {
  if (std::ranges::find(turned_away_, who) != turned_away_.end()) return;
  turned_away_.push_back(who);
  if (turned_away_.size() > kNotesMax) turned_away_.pop_front();
}

std::string Reception::turned_away() const {
  std::string text;
  for (const auto& who : turned_away_) text += (text.empty() ? "" : "; ") + who;
  return text;
}

}  // namespace reprise
