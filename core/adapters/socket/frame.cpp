#include "core/adapters/socket/frame.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"

namespace reprise {
namespace {

constexpr std::uint32_t kMagic = 0x4b535052;  // "RPSK"
constexpr std::size_t kHeadBytes = 40;
constexpr std::size_t kPartsAtOnce = 64;
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20U;
constexpr std::size_t kFirstRoom = std::size_t{1} << 16U;
constexpr std::uint64_t kAnswerBytesMax = std::uint64_t{1} << 23U;

Bytes encode(const FrameHeader& header) {
  Bytes head;
  head.reserve(kHeadBytes);
  append_le(head, kMagic);
  append_le(head, static_cast<std::uint32_t>(header.kind));
  for (const auto number : {header.size, header.channel, header.call, header.sequence}) {
    append_le(head, number);
  }
  return head;
}

/// Returns nothing if these bytes are no header.
std::optional<FrameHeader> decode(ByteSpan head) {
  const auto number = [&head](std::size_t at) { return load_le<std::uint64_t>(head.subspan(at)); };
  const auto kind = load_le<std::uint32_t>(head.subspan(4));
  if (load_le<std::uint32_t>(head) != kMagic ||
      kind < static_cast<std::uint32_t>(FrameKind::kJoin) ||
      kind > static_cast<std::uint32_t>(FrameKind::kBye)) {
    return std::nullopt;
  }
  return FrameHeader{.kind = static_cast<FrameKind>(kind),
                     .size = number(8),
                     .channel = number(16),
                     .call = number(24),
                     .sequence = number(32)};
}

std::uint64_t size_max_of(FrameKind kind) {
  if (kind == FrameKind::kData) return kDataBytesMax;
  return kind == FrameKind::kAnswer ? kAnswerBytesMax : kHelloBytesMax;
}

}  // namespace

FrameReader::State FrameReader::state_after(const Moved& moved) {
  if (!moved.ended && moved.error == 0) return State::kWaiting;
  error_ = moved.error;
  return State::kEnded;
}

FrameReader::State FrameReader::read(const Socket& socket) {
  if (head_.size() < kHeadBytes) {
    const State state = read_head(socket);
    if (state != State::kFrame) return state;
  }
  return read_body(socket);
}

FrameReader::State FrameReader::read_head(const Socket& socket) {
  const std::size_t before = head_.size();
  head_.resize(kHeadBytes);
  const Moved moved = receive_some(socket, MutableByteSpan(head_).subspan(before));
  head_.resize(before + moved.bytes);
  if (head_.size() < kHeadBytes) return state_after(moved);
  const auto header = decode(head_);
  if (!header || header->size > std::min(size_max_, size_max_of(header->kind))) {
    return State::kGarbled;
  }
  frame_.header = *header;
  have_ = 0;
  return State::kFrame;
}

FrameReader::State FrameReader::read_body(const Socket& socket) {
  Bytes& body = frame_.body;
  const std::uint64_t size = frame_.header.size;
  if (have_ == size) return State::kFrame;
  if (have_ == body.size()) {
    const std::size_t room = std::min<std::uint64_t>(size, std::max(kFirstRoom, 2 * have_));
    body.reserve(room);
    body.resize(room);
  }
  const auto rest = MutableByteSpan(body).subspan(have_);
  const Moved moved = receive_some(socket, rest.first(std::min(rest.size(), kReadAtOnce)));
  have_ += moved.bytes;
  return have_ == size ? State::kFrame : state_after(moved);
}

Frame FrameReader::take() {
  CHECK(head_.size() == kHeadBytes && have_ == frame_.header.size, have_);
  head_.clear();
  have_ = 0;
  return std::exchange(frame_, {});
}

void FrameQueue::put(const FrameHeader& header, SharedBytes body) {
  CHECK(header.size == (body ? body->size() : 0), header.size);
  queue_.push_back({std::make_shared<Bytes>(encode(header))});
  if (header.size != 0) queue_.push_back({std::move(body)});
}

int FrameQueue::send(const Socket& socket) {
  while (!queue_.empty()) {
    std::vector<ByteSpan> parts;
    for (const auto& part : queue_) {
      parts.push_back(ByteSpan(*part.bytes).subspan(part.sent));
      if (parts.size() == kPartsAtOnce) break;
    }
    Moved moved = send_some(socket, parts);
    if (moved.error != 0) return moved.error;
    if (moved.bytes == 0) return 0;
    while (moved.bytes != 0) {
      Part& part = queue_.front();
      const std::size_t taken = std::min(moved.bytes, part.bytes->size() - part.sent);
      moved.bytes -= taken;
      part.sent += taken;
      if (part.sent == part.bytes->size()) queue_.pop_front();
    }
  }
  return 0;
}

}  // namespace reprise
