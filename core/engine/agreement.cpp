#include "core/engine/agreement.hpp"

#include "core/base/check.hpp"

namespace reprise {
namespace {

enum class Tag : std::uint8_t { kBytes, kError };

/// What it is stands at the end: bytes then need not be moved to be read.
void close(Bytes& wire, Tag tag) { wire.push_back(static_cast<std::byte>(tag)); }

Bytes encode(const Error& error) {
  Bytes wire;
  append_le(wire, static_cast<std::uint32_t>(error.code()));
  append_le(wire, error.place().rank ? error.place().rank->value : std::int32_t{-1});
  append_le(wire, std::uint8_t{error.place().offset.has_value()});
  append_le(wire, error.place().offset.value_or(0));
  for (const auto& text : {error.message(), error.place().key, error.place().file}) {
    append_le(wire, static_cast<std::uint64_t>(text.size()));
    append(wire, as_bytes(text));
  }
  close(wire, Tag::kError);
  return wire;
}

/// Where there is no memory for what a rank has to say, it says that.
Bytes encode(Contribution mine) {
  if (mine.error) return encode(*mine.error);
  Contribution closed = contribution_of([&mine] {
    close(mine.bytes, Tag::kBytes);
    return std::move(mine.bytes);
  });
  return closed.error ? encode(*closed.error) : std::move(closed.bytes);
}

Tag take_tag(Bytes& wire) {
  CHECK(!wire.empty());
  const auto tag = static_cast<Tag>(wire.back());
  wire.pop_back();
  return tag;
}

template <class T>
T take(ByteSpan& wire) {
  CHECK(wire.size() >= sizeof(T));
  const T value = load_le<T>(wire);
  wire = wire.subspan(sizeof(T));
  return value;
}

std::string take_text(ByteSpan& wire) {
  const auto size = take<std::uint64_t>(wire);
  CHECK(size <= wire.size());
  std::string text{as_text(wire.first(size))};
  wire = wire.subspan(size);
  return text;
}

Error decode_error(ByteSpan wire, GlobalRank sender) {
  const auto code = static_cast<Code>(take<std::uint32_t>(wire));
  ErrorPlace place;
  const auto rank = take<std::int32_t>(wire);
  place.rank = rank >= 0 ? GlobalRank{rank} : sender;
  const bool has_offset = take<std::uint8_t>(wire) != 0;
  const auto offset = take<std::uint64_t>(wire);
  if (has_offset) place.offset = offset;
  std::string message = take_text(wire);
  place.key = take_text(wire);
  place.file = take_text(wire);
  return Error(code, std::move(message), std::move(place));
}

}  // namespace

std::vector<Contribution> hear(Communicator& group, Contribution mine) {
  const Bytes wire = encode(std::move(mine));
  std::vector<Contribution> heard;
  for (auto& bytes : group.all_gather(wire)) {
    if (take_tag(bytes) == Tag::kError) {
      const auto sender = static_cast<std::int32_t>(heard.size());
      heard.push_back({{}, decode_error(bytes, group.group().member({sender}))});
    } else {
      heard.push_back({std::move(bytes), {}});
    }
  }
  return heard;
}

std::vector<Bytes> agree(Communicator& group, Contribution mine) {
  std::vector<Contribution> heard = hear(group, std::move(mine));
  std::vector<Bytes> all;
  for (auto& one : heard) {
    if (one.error) throw *one.error;
    all.push_back(std::move(one.bytes));
  }
  return all;
}

Contribution contribution_of(const std::function<Bytes()>& work) {
  try {
    return {work(), {}};
  } catch (const Error& error) {
    return {{}, error};
  } catch (const std::exception& mistake) {
    return {{}, Error(Code::kInternal, mistake.what())};
  }
}

std::vector<Bytes> agree_on(Communicator& group, const std::function<Bytes()>& work) {
  return agree(group, contribution_of(work));
}

}  // namespace reprise
