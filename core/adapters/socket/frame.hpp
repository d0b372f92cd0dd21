#pragma once
// Messages on a connection: a header of fixed size, then bytes.
//
//   offset  bytes
//        0      4  kMagic
//        4      4  kind
//        8      8  number of bytes after the header
//       16      8  channel: which communicator (kData, kWarn)
//       24      8  call: which operation (kData), or a rank (kWarn, kLost)
//       32      8  sequence: how many calls of the communicator came before (kData)

#include <deque>
#include <memory>
#include <optional>

#include "core/adapters/socket/socket.hpp"
#include "core/base/bytes.hpp"

namespace reprise {

enum class FrameKind : std::uint32_t {
  kJoin = 1,  ///< a rank comes to rank 0; a Hello
  kLink,      ///< the first message on a connection between two ranks; a Hello
  kAnswer,    ///< to kJoin, or why a connection is refused; an Answer
  kData,      ///< one member's bytes in a collective call
  kWarn,      ///< a member has called warn()
  kLost,      ///< a rank has ended; how that was noticed, in words
  kBye,       ///< the sender leaves in good order; the last message
};

struct FrameHeader {
  FrameKind kind = FrameKind::kBye;
  std::uint64_t size = 0;
  std::uint64_t channel = 0;
  std::uint64_t call = 0;
  std::uint64_t sequence = 0;
};

/// Largest contribution of a member to one call, in bytes.
inline constexpr std::uint64_t kDataBytesMax = std::uint64_t{1} << 36U;
/// Largest Hello.
inline constexpr std::uint64_t kHelloBytesMax = 1024;

/// Bytes that are sent from the memory where they lie: several frames may share them.
using SharedBytes = std::shared_ptr<Bytes>;

struct Frame {
  FrameHeader header;
  Bytes body;
};

/// Puts together the frames that arrive on a connection.
class FrameReader {
 public:
  enum class State {
    kWaiting,  ///< the rest of the frame has not arrived
    kFrame,    ///< take() has it
    kEnded,    ///< the connection is closed
    kGarbled,  ///< no frame, or one that is too large
  };

  /// Frames of more than `size_max` bytes are garbled, and so are those too large for their kind.
  /// Memory for a frame is allocated as its bytes arrive, not as its header claims.
  explicit FrameReader(std::uint64_t size_max = kDataBytesMax) : size_max_(size_max) {}

  /// Reads what has arrived, at most to the end of one frame and about a MiB. `error()` is why a
  /// connection ended.
  State read(const Socket& socket);
  Frame take();
  int error() const { return error_; }

 private:
  State read_head(const Socket& socket);
  State read_body(const Socket& socket);
  State state_after(const Moved& moved);

  std::uint64_t size_max_;
  Bytes head_;
  Frame frame_;
  std::size_t have_ = 0;  ///< bytes of the body that have arrived
  int error_ = 0;
};

/// Frames that wait to be sent on a connection.
class FrameQueue {
 public:
  void put(const FrameHeader& header, SharedBytes body = {});
  bool empty() const { return queue_.empty(); }
  void clear() { queue_.clear(); }
  /// Sends as much as the system takes now. Returns errno, or 0.
  int send(const Socket& socket);

 private:
  struct Part {
    SharedBytes bytes;
    std::size_t sent = 0;
  };
  std::deque<Part> queue_;  ///< no part is empty
};

}  // namespace reprise
