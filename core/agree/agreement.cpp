#include "core/agree/agreement.hpp"

#include "core/agree/peer_wire.hpp"
#include "core/base/caught.hpp"
#include "core/base/codes.hpp"

namespace reprise {
namespace {

enum class Tag : std::uint8_t { kBytes, kError };

constexpr std::string_view kContribution = "a contribution";

/// Appends the tag to the message. The tag comes last, so that the receiver can drop it without
/// moving the other bytes.
void close(Bytes& wire, Tag tag) { wire.push_back(static_cast<std::byte>(tag)); }

Bytes encode(const Error& error) {
  Bytes wire;
  append_le(wire, static_cast<std::uint32_t>(error.code()));
  append_le(wire, error.place().rank ? error.place().rank->value : std::int32_t{-1});
  append_le(wire, std::uint8_t{error.place().offset.has_value()});
  append_le(wire, error.place().offset.value_or(0));
  for (const auto& text : {error.message(), error.place().key, error.place().file}) {
    put_text(wire, text);
  }
  close(wire, Tag::kError);
  return wire;
}

/// Encodes a contribution, which is bytes or an error. If memory runs out while the tag is being
/// added, encodes an error that says so.
Bytes encode(Contribution mine) {
  if (mine.error) return encode(*mine.error);
  Contribution closed = contribution_of([&mine] {
    close(mine.bytes, Tag::kBytes);
    return std::move(mine.bytes);
  });
  return closed.error ? encode(*closed.error) : std::move(closed.bytes);
}

Tag take_tag(Bytes& wire) {
  const PeerWire whole(wire, kContribution);
  if (whole.empty()) whole.refuse("is empty");
  const auto tag = static_cast<Tag>(wire.back());
  if (tag != Tag::kBytes && tag != Tag::kError) whole.refuse("is of an unknown kind");
  wire.pop_back();
  return tag;
}

Error decode_error(ByteSpan bytes, GlobalRank sender) {
  PeerWire wire(bytes, kContribution);
  const auto code = wire.number<std::uint32_t>();
  if (!is_error(static_cast<Code>(code))) wire.refuse("has an unknown error code");
  ErrorPlace place;
  const auto rank = wire.number<std::int32_t>();
  place.rank = rank >= 0 ? GlobalRank{rank} : sender;
  const bool has_offset = wire.number<std::uint8_t>() != 0;
  const auto offset = wire.number<std::uint64_t>();
  if (has_offset) place.offset = offset;
  std::string message = wire.text();
  place.key = wire.text();
  place.file = wire.text();
  wire.end();
  return Error(static_cast<Code>(code), std::move(message), std::move(place));
}

}  // namespace

std::vector<Contribution> gather_contributions(Communicator& group, Contribution mine) {
  const Bytes wire = encode(std::move(mine));
  std::vector<Bytes> all = group.all_gather(wire);
  std::vector<Contribution> gathered;
  gathered.reserve(all.size());
  for (Bytes& bytes : all) {
    if (take_tag(bytes) == Tag::kError) {
      const auto sender = static_cast<std::int32_t>(gathered.size());
      gathered.push_back({{}, decode_error(bytes, group.group().member({sender}))});
    } else {
      gathered.push_back({std::move(bytes), {}});
    }
  }
  return gathered;
}

std::vector<Bytes> agree(Communicator& group, Contribution mine) {
  std::vector<Contribution> gathered = gather_contributions(group, std::move(mine));
  std::optional<Error> failed;
  std::vector<Bytes> all;
  all.reserve(gathered.size());
  for (auto& one : gathered) {
    if (one.error) keep_cause(failed, *one.error);
    all.push_back(std::move(one.bytes));
  }
  if (failed) throw Error(*failed);
  return all;
}

bool is_about_a_peer(const Error& error) {
  return error.code() == Code::kPeerFailed || error.code() == Code::kDeadline;
}

void keep_cause(std::optional<Error>& kept, const Error& error) {
  if (!kept || (is_about_a_peer(*kept) && !is_about_a_peer(error))) kept = error;
}

Contribution contribution_of(const std::function<Bytes()>& work) {
  try {
    return {work(), {}};
  } catch (const std::exception& caught) {
    return {{}, error_from(caught)};
  }
}

std::vector<Bytes> agree_on(Communicator& group, const std::function<Bytes()>& work) {
  return agree(group, contribution_of(work));
}

}  // namespace reprise
