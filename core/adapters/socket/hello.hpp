#pragma once
// Defines the messages by which ranks introduce themselves when they meet. All are text, so that
// they can also go through a KeyStore.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/error.hpp"

namespace reprise {

/// Version of the protocol. Ranks with another one are refused.
inline constexpr int kSocketVersion = 1;

/// A rank introduces itself with this.
struct Hello {
  int version = kSocketVersion;
  std::string job;  ///< SocketOptions::job
  std::int32_t size = 0;
  GlobalRank rank;
  std::string address;   ///< where the rank listens
  std::string key = {};  ///< the session's, once there is one
};

std::string encode(const Hello& hello);
/// Returns nothing if the text is no hello. If its version is another one, only that is set.
std::optional<Hello> decode_hello(std::string_view text);

/// Returns why a rank can't belong to the job that `own` belongs to; nothing if it can. `from`
/// names the sender.
std::optional<Error> refusal_of(const Hello& hello, const Hello& own, const std::string& from);

/// The ranks get this when all of them have come.
struct Session {
  std::string key;                     ///< a random text that only this job's ranks have
  std::vector<std::string> addresses;  ///< of each rank
};

/// A session, or why there is none for this rank.
struct Answer {
  std::optional<Error> refused;
  Session session;
};

std::string encode(const Answer& answer);
/// Returns nothing if the text is no answer.
std::optional<Answer> decode_answer(std::string_view text);

}  // namespace reprise
