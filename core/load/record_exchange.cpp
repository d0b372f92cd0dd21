#include "core/load/record_exchange.hpp"

#include <algorithm>
#include <utility>

#include "core/agree/peer_wire.hpp"
#include "core/base/check.hpp"
#include "core/base/keep_for_ever.hpp"
#include "core/base/sha256.hpp"

namespace reprise {
namespace {

constexpr std::size_t kRecordBytes = 20;

/// Number of bytes at each end of a record that are fetched from the device with those of all other
/// records: more than a tensor's item usually has around its elements.
constexpr std::uint64_t kEndBytes = 2048;

/// Number of bytes that are fetched from the device at a time if more than the ends are needed.
constexpr std::uint64_t kFetchedAtOnce = std::uint64_t{256} << 10U;

std::uint64_t end_bytes(const StoredRecord& record) {
  return std::min(record.range.size, 2 * kEndBytes);
}

/// Returns the host memory that a round takes whose bytes are on the device: the ends of its
/// records, and what is fetched at a time.
std::uint64_t beside_device(const SharedRound& round) {
  std::uint64_t ends = 0;
  std::uint64_t fetched = 0;
  for (const auto& record : round.records) {
    ends += end_bytes(record);
    fetched = std::max(fetched, std::min(record.range.size, kFetchedAtOnce));
  }
  return ends + fetched;
}

/// A copy of contiguous bytes from the device.
GatherCopy bytes_copy(const std::byte* device, std::byte* host, std::uint64_t bytes) {
  return {
      .device = {device, {1}}, .host = {host, {1}}, .extents = {static_cast<std::int64_t>(bytes)}};
}

Bytes encode(const std::vector<StoredRecord>& records) {
  Bytes wire;
  wire.reserve(records.size() * kRecordBytes);
  for (const auto& record : records) {
    append_le(wire, record.file);
    append_le(wire, record.range.offset);
    append_le(wire, record.range.size);
  }
  return wire;
}

std::vector<StoredRecord> decode(ByteSpan bytes, std::size_t files) {
  PeerWire wire(bytes, "a list of records");
  std::vector<StoredRecord> records;
  while (!wire.empty()) {
    const auto file = wire.number<FileIndex>();
    if (file >= files) wire.refuse("names a file that the checkpoint does not have");
    const auto offset = wire.number<std::uint64_t>();
    records.push_back({file, {offset, wire.number<std::uint64_t>()}});
  }
  return records;
}

/// The records that each rank needs. Ranks that need the same records form one class, and one rank
/// of each class has sent the list of these records.
struct WantedRecords {
  std::uint64_t room = UINT64_MAX;    ///< the smallest of any rank
  bool on_device = true;              ///< true if shares can go to the devices of all ranks
  std::vector<AlikeReaders> classes;  ///< the classes; their records are not set yet
  std::vector<std::size_t> first;     ///< for each class, the rank that sent the list
  std::vector<Bytes> wires;           ///< every rank's list, or nothing
};

std::vector<AlikeReaders> classes_of(const WantedRecords& lists, std::size_t files) {
  std::vector<AlikeReaders> classes = lists.classes;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    classes[c].records = decode(lists.wires[lists.first[c]], files);
  }
  return classes;
}

/// Collective. One rank of each class sends the list of records that the class needs, so that the
/// amount of data does not grow with the number of replicas.
WantedRecords exchange_wanted(Communicator& group,
                              const std::function<std::vector<StoredRecord>()>& wanted,
                              std::uint64_t room, bool on_device) {
  Bytes wire;
  const auto offers = agree_on(group, [&] {
    std::vector<StoredRecord> records = wanted();
    std::sort(records.begin(), records.end());
    records.erase(std::unique(records.begin(), records.end()), records.end());
    wire = encode(records);
    Bytes offer;
    append_le(offer, room);
    append_le(offer, static_cast<std::uint8_t>(on_device ? 1 : 0));
    append(offer, sha256_of(wire));
    return offer;
  });
  WantedRecords lists;
  lists.wires = agree_on(group, [&] {
    std::map<Bytes, std::size_t> known;
    for (std::size_t r = 0; r < offers.size(); ++r) {
      PeerWire offer(offers[r], "what a rank wants to read");
      lists.room = std::min(lists.room, offer.number<std::uint64_t>());
      lists.on_device = (offer.number<std::uint8_t>() != 0) && lists.on_device;
      const ByteSpan digest = offer.bytes(sizeof(Sha256Digest));
      offer.end();
      const auto [found, is_new] =
          known.emplace(Bytes(digest.begin(), digest.end()), lists.classes.size());
      if (is_new) {
        lists.classes.emplace_back();
        lists.first.push_back(r);
      }
      lists.classes[found->second].ranks.push_back({static_cast<std::int32_t>(r)});
    }
    const auto self = static_cast<std::size_t>(group.rank().value);
    const bool sends = std::binary_search(lists.first.begin(), lists.first.end(), self);
    return sends ? std::move(wire) : Bytes{};
  });
  return lists;
}

}  // namespace

RecordExchange::RecordExchange(const Ports& ports, Communicator& group, Checkpoint& checkpoint,
                               const std::function<std::vector<StoredRecord>()>& wanted,
                               ShareReads share, std::uint64_t room, AtHand may_be)
    : tasks_(ports.tasks), device_(ports.device), checkpoint_(checkpoint) {
  std::map<std::size_t, Group> own;
  const bool can = may_be == AtHand::kOnDevice && ports.data != nullptr && !device_.host_memory();
  const WantedRecords lists = exchange_wanted(group, wanted, room, can);
  on_device_ = lists.on_device;
  // If planning fails on one rank, the whole group throws. Otherwise, ranks would later wait in a
  // smaller group for a member that has failed.
  agree_on(group, [&] {
    const std::uint64_t most = on_device_ ? Communicator::kOnDeviceMax : UINT64_MAX;
    plan_ =
        share(classes_of(lists, checkpoint_.catalog().files.size()), std::min(lists.room, most));
    for (std::size_t g = 0; g < plan_.groups.size(); ++g) {
      const auto& ranks = plan_.groups[g];
      if (!std::binary_search(ranks.begin(), ranks.end(), group.rank())) continue;
      std::vector<GlobalRank> members;
      for (const auto rank : ranks) members.push_back(group.group().member(rank));
      own.emplace(g, Group(std::move(members)));
    }
    return Bytes{};
  });
  for (const auto& [number, members] : own) circles_[number] = circle_of(ports, members);
}

/// A rank whose data fabric is broken takes part in the rounds, so that the others hear of it. If a
/// member has no room for a communicator of the data fabric, all members use the control fabric.
RecordExchange::Circle RecordExchange::circle_of(const Ports& ports, const Group& members) {
  Circle circle;
  circle.control = ports.fabric.communicator(members);
  circle.data = circle.control;
  if (ports.data == nullptr) return circle;
  const auto failure = contribution_of([&] {
                         circle.data = ports.data->communicator(members);
                         return Bytes{};
                       }).error;
  if (failure && failure->code() == Code::kNoSpace) {
    ports.trace.event({.phase = "load",
                       .detail = "data is exchanged through host memory: " + failure->message()});
    return circle;
  }
  note(failure);
  return circle;
}

RecordExchange::~RecordExchange() = default;

/// Returns the memory for a whole round: what this rank reads and sends, what it receives, and what
/// it reads for its next round meanwhile.
std::uint64_t RecordExchange::bound() const {
  std::uint64_t most = 0;
  std::uint64_t round_and_share = 0;  // of the round before
  for (const auto& round : plan_.rounds) {
    if (!circles_.contains(round.group)) continue;
    const std::uint64_t members = plan_.groups[round.group].size();
    const std::uint64_t share = share_of_round(round.bytes, members, 0).size;  // the largest share
    most = std::max(most, round_and_share + share);
    round_and_share = share + round.bytes;
    if (on_device_) round_and_share += beside_device(round);
  }
  return std::max(most, round_and_share);
}

void RecordExchange::note(const std::optional<Error>& error) {
  if (error) keep_cause(failed_, *error);
}

void RecordExchange::run(const std::function<void(std::span<const StoredRecord>, AtHand)>& use) {
  std::vector<OwnRound> rounds;
  for (const auto& round : plan_.rounds) {
    const auto circle = circles_.find(round.group);
    if (circle != circles_.end()) rounds.push_back({&round, &circle->second});
  }
  std::unique_ptr<Share> next;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    std::unique_ptr<Share> mine;
    std::optional<Error> failed = failed_;
    if (!failed) {
      failed = contribution_of([&] {
                 mine = whole_share(rounds[i], std::move(next));
                 if (i + 1 < rounds.size()) next = start_share(rounds[i + 1]);
                 return Bytes{};
               }).error;
    }
    if (failed) next.reset();
    ahead_ = next ? next->bytes.size() : 0;
    if (!take(rounds[i], std::move(mine), failed)) break;
    if (failed_) continue;
    const Contribution used = contribution_of([&] {
      lay_out(*rounds[i].round);
      use(rounds[i].round->records, device_bytes_ != nullptr ? AtHand::kOnDevice : AtHand::kOnHost);
      return Bytes{};
    });
    at_hand_ = nullptr;
    note(used.error);
  }
  forget_round();
  if (failed_) throw Error(*failed_);
}

void RecordExchange::forget_round() {
  shares_.clear();
  ends_.clear();
  fetched_.reset();
  device_bytes_ = nullptr;
}

/// Receives the shares of a whole round. If a rank has failed, it says so, and no shares are sent.
/// Returns false if a rank is lost.
bool RecordExchange::take(const OwnRound& own, std::unique_ptr<Share> mine,
                          const std::optional<Error>& failed) {
  const Circle& ranks = *own.ranks;
  forget_round();
  const Contribution called = contribution_of([&] {
    for (const auto& gathered :
         gather_contributions(*ranks.control, {.bytes = {}, .error = failed}))
      note(gathered.error);
    return Bytes{};
  });
  note(failed);
  note(called.error);
  if (called.error || failed_) return !called.error;
  const Contribution gathered = contribution_of([&] {
    gather_shares(own, mine->bytes);
    return Bytes{};
  });
  note(gathered.error);
  if (!gathered.error || ranks.data == ranks.control) return !gathered.error;
  if (goes_to_devices(*own.round)) keep_for_ever(std::move(mine->memory));
  return true;
}

/// False for a record that is larger than what devices gather at once: it is a round of its own.
bool RecordExchange::goes_to_devices(const SharedRound& round) const {
  return on_device_ && round.bytes <= Communicator::kOnDeviceMax;
}

void RecordExchange::gather_shares(const OwnRound& own, ByteSpan mine) {
  Communicator& ranks = *own.ranks->data;
  std::uint64_t held = mine.size() + ahead_;
  if (goes_to_devices(*own.round)) {
    const auto members = static_cast<std::size_t>(ranks.group().size());
    device_bytes_ =
        ranks.all_gather_on_device(share_of_round(own.round->bytes, members, 0).size, mine);
  }
  if (device_bytes_ == nullptr) shares_ = ranks.all_gather(mine);
  for (const auto& share : shares_) held += share.capacity();
  peak_ = std::max(peak_, held);
}

void RecordExchange::lay_out(const SharedRound& round) {
  begins_.clear();
  for (std::uint64_t begin = 0; const auto& record : round.records) {
    begins_.push_back(begin);
    begin += record.range.size;
  }
  if (device_bytes_ != nullptr) fetch_ends(round);
  at_hand_ = &round;
}

/// Fetches the ends of all records at once: waiting for the device once for each would take longer
/// than the copies.
void RecordExchange::fetch_ends(const SharedRound& round) {
  std::uint64_t bytes = 0;
  for (const auto& record : round.records) {
    ends_.push_back({bytes, std::min(record.range.size, kEndBytes), end_bytes(record)});
    bytes += end_bytes(record);
  }
  const std::uint64_t held = beside_device(round);
  fetched_ = device_.staging(held);
  passing_ = {fetched_.get() + bytes, held - bytes};
  std::vector<GatherCopy> copies;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const Ends& ends = ends_[i];
    const std::byte* const record = device_bytes_ + begins_[i];
    const std::uint64_t last = ends.bytes - ends.first;
    copies.push_back(bytes_copy(record, fetched_.get() + ends.place, ends.first));
    copies.push_back(bytes_copy(record + (round.records[i].range.size - last),
                                fetched_.get() + ends.place + ends.first, last));
  }
  fetch(copies);
  peak_ = std::max(peak_, ahead_ + held);
}

/// Makes the copies to staging memory. If waiting for them fails, waits once more, because that
/// memory is then used for something else.
void RecordExchange::fetch(std::span<const GatherCopy> copies) const {
  const DeviceEvent copied = device_.gather(copies);
  try {
    device_.wait(copied);
  } catch (const std::exception&) {
    static_cast<void>(contribution_of([&] {
      device_.wait(copied);
      return Bytes{};
    }));
    throw;
  }
}

/// Returns the share when all of it has been read.
std::unique_ptr<RecordExchange::Share> RecordExchange::whole_share(const OwnRound& own,
                                                                   std::unique_ptr<Share> begun) {
  if (!begun) begun = start_share(own);
  begun->reading->wait();
  bytes_read_ += begun->bytes.size();
  return begun;
}

/// Starts to read this rank's share of a round. An error comes out of the task.
std::unique_ptr<RecordExchange::Share> RecordExchange::start_share(const OwnRound& own) {
  struct Part {
    std::shared_ptr<ReadFile> file;
    std::uint64_t offset;
    MutableByteSpan out;
  };
  const SharedRound& round = *own.round;
  const Communicator& ranks = *own.ranks->control;
  const ByteRange range =
      share_of_round(round.bytes, static_cast<std::size_t>(ranks.group().size()),
                     static_cast<std::size_t>(ranks.rank().value));
  auto share = std::make_unique<Share>();
  std::vector<Part> parts;
  const auto prepare = [&] {
    std::uint64_t begin = 0;
    std::vector<ByteRange> places;
    for (const auto& record : round.records) {
      const std::uint64_t from = std::max(begin, range.offset);
      const std::uint64_t to = std::min(begin + record.range.size, range.offset + range.size);
      if (from < to) {
        const ByteRange stored{record.range.offset + (from - begin), to - from};
        auto file = checkpoint_.plain_file(record.file);
        if (!stored.fits(file->size())) {  // checked before as much is allocated as is claimed
          throw Error(Code::kTornFile, "the metadata claims bytes beyond the end of the file",
                      {.file = checkpoint_.display(record.file), .offset = stored.offset});
        }
        parts.push_back({std::move(file), stored.offset, {}});
        places.push_back({from - range.offset, stored.size});
      }
      begin += record.range.size;
    }
    share->memory = goes_to_devices(round)
                        ? device_.staging(range.size)
                        : std::make_unique_for_overwrite<std::byte[]>(range.size);
    share->bytes = {share->memory.get(), range.size};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].out = share->bytes.subspan(places[i].offset, places[i].size);
    }
    return Bytes{};
  };
  const std::optional<Error> unprepared = contribution_of(prepare).error;
  share->reading = tasks_.start([parts = std::move(parts), unprepared] {
    if (unprepared) throw Error(*unprepared);
    for (const auto& part : parts) part.file->read_at(part.offset, part.out);
  });
  return share;
}

/// Finds these bytes in the current round; returns nothing if the round does not contain them.
std::optional<RecordExchange::Place> RecordExchange::place_of(FileIndex file, std::uint64_t offset,
                                                              std::uint64_t bytes) const {
  if (at_hand_ == nullptr) return std::nullopt;
  const auto& records = at_hand_->records;
  const auto after =
      std::upper_bound(records.begin(), records.end(), StoredRecord{file, {offset, UINT64_MAX}});
  if (after == records.begin()) return std::nullopt;
  const StoredRecord& record = *std::prev(after);
  const std::uint64_t within = offset - record.range.offset;
  if (record.file != file || !ByteRange{within, bytes}.fits(record.range.size)) {
    return std::nullopt;
  }
  return Place{static_cast<std::size_t>(after - records.begin()) - 1, within};
}

const std::byte* RecordExchange::on_device(FileIndex file, ByteRange bytes) const {
  if (device_bytes_ == nullptr) return nullptr;
  const auto place = place_of(file, bytes.offset, bytes.size);
  return place ? device_bytes_ + begins_[place->record] + place->within : nullptr;
}

void RecordExchange::read_from_device(const Place& place, MutableByteSpan out) const {
  const Ends& ends = ends_[place.record];
  const std::uint64_t size = at_hand_->records[place.record].range.size;
  const std::uint64_t last = size - (ends.bytes - ends.first);  // where the last bytes begin
  const ByteRange wanted{place.within, out.size()};
  if (wanted.fits(ends.first)) {
    std::copy_n(fetched_.get() + ends.place + wanted.offset, wanted.size, out.begin());
  } else if (wanted.offset >= last) {
    std::copy_n(fetched_.get() + ends.place + ends.first + (wanted.offset - last), wanted.size,
                out.begin());
  } else {
    const std::scoped_lock lock(fetching_);
    const std::byte* from = device_bytes_ + begins_[place.record] + wanted.offset;
    for (MutableByteSpan rest = out; !rest.empty();) {
      const std::size_t count = std::min(rest.size(), passing_.size());
      const GatherCopy copy = bytes_copy(from, passing_.data(), count);
      fetch({&copy, 1});
      std::copy_n(passing_.data(), count, rest.begin());
      rest = rest.subspan(count);
      from += count;
    }
  }
}

bool RecordExchange::read(FileIndex file, std::uint64_t offset, MutableByteSpan out) const {
  const auto place = place_of(file, offset, out.size());
  if (!place) return false;
  if (device_bytes_ != nullptr) {
    read_from_device(*place, out);
    return true;
  }
  std::uint64_t skipped = begins_[place->record] + place->within;
  for (const auto& share : shares_) {
    if (out.empty()) break;
    if (skipped >= share.size()) {
      skipped -= share.size();
      continue;
    }
    const std::size_t count = std::min<std::size_t>(out.size(), share.size() - skipped);
    std::copy_n(share.begin() + static_cast<std::ptrdiff_t>(skipped), count, out.begin());
    out = out.subspan(count);
    skipped = 0;
  }
  CHECK(out.empty(), out.size());
  return true;
}

}  // namespace reprise
