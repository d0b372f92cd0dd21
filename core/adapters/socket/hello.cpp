#include "core/adapters/socket/hello.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "core/base/codes.hpp"

namespace reprise {
namespace {

constexpr std::string_view kHello = "reprise-rank";
constexpr std::string_view kWelcome = "welcome";

/// Returns the text before the next line break, and removes both.
std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return line;
}

std::optional<std::int32_t> number_in(std::string_view text) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  if (error != std::errc() || end != text.end()) return std::nullopt;
  return number;
}

}  // namespace

std::string encode(const Hello& hello) {
  std::ostringstream text;
  text << kHello << '\n'
       << hello.version << '\n'
       << hello.job << '\n'
       << hello.size << '\n'
       << hello.rank << '\n'
       << hello.address << '\n'
       << hello.key << '\n';
  return text.str();
}

std::optional<Hello> decode_hello(std::string_view text) {
  constexpr std::ptrdiff_t kLines = 7;
  const bool whole = text.ends_with('\n') && std::ranges::count(text, '\n') == kLines;
  if (take_line(text) != kHello) return std::nullopt;
  const auto version = number_in(take_line(text));
  if (!version) return std::nullopt;
  if (*version != kSocketVersion) return Hello{.version = *version};
  if (!whole) return std::nullopt;
  const auto job = take_line(text);
  const auto size = number_in(take_line(text));
  const auto rank = number_in(take_line(text));
  const auto address = take_line(text);
  const auto key = take_line(text);
  if (!size || !rank || address.empty()) return std::nullopt;
  return Hello{.job = std::string(job),
               .size = *size,
               .rank = {*rank},
               .address = std::string(address),
               .key = std::string(key)};
}

std::optional<Error> refusal_of(const Hello& hello, const Hello& own, const std::string& from) {
  std::ostringstream text;
  if (hello.version != kSocketVersion) {
    text << from << " uses version " << hello.version
         << " of the protocol, but this rank uses version " << kSocketVersion
         << ": run the same release of Reprise on all ranks";
    return Error(Code::kUnsupported, text.str());
  }
  text << from << " is rank " << hello.rank << " of " << hello.size;
  if (hello.job != own.job) {
    text << " of job '" << hello.job << "', but this is job '" << own.job << "'";
    return Error(Code::kUsage, text.str());
  }
  if (hello.size != own.size) {
    text << ", but this job has " << own.size << " ranks";
    return Error(Code::kLayoutMismatch, text.str());
  }
  if (hello.rank.value < 0 || hello.rank.value >= hello.size) {
    text << ", and ranks count from 0";
    return Error(Code::kLayoutMismatch, text.str());
  }
  if (hello.key != own.key) {
    text << " of another start of job '" << own.job << "'";
    return Error(Code::kUsage, text.str());
  }
  return std::nullopt;
}

std::string encode(const Answer& answer) {
  std::ostringstream text;
  if (answer.refused) {
    const std::int32_t rank = answer.refused->place().rank.value_or(GlobalRank{-1}).value;
    text << answer.refused->code() << '\n' << rank << '\n' << answer.refused->message();
    return text.str();
  }
  text << kWelcome << '\n' << answer.session.key << '\n';
  for (const auto& address : answer.session.addresses) text << address << '\n';
  return text.str();
}

std::optional<Answer> decode_answer(std::string_view text) {
  const std::string_view first = take_line(text);
  if (first == kWelcome) {
    Answer answer{.refused = {}, .session = {.key = std::string(take_line(text)), .addresses = {}}};
    while (!text.empty()) answer.session.addresses.emplace_back(take_line(text));
    return answer;
  }
  const auto code = code_named(first);
  const auto rank = number_in(take_line(text));
  if (!code || !rank) return std::nullopt;
  ErrorPlace place;
  if (*rank >= 0) place.rank = GlobalRank{*rank};
  return Answer{.refused = Error(*code, std::string(text), place), .session = {}};
}

}  // namespace reprise
