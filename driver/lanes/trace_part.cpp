#include "driver/lanes/trace_part.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

using Json = nlohmann::json;

sim::Slice take_slice(const Json& json) {
  sim::Slice slice{.kind = json.at("slice").get<sim::SliceKind>(),
                   .rank = GlobalRank{json.at("rank").get<std::int32_t>()},
                   .fiber = json.at("thread").get<std::size_t>(),
                   .name = json.at("name").get<std::string>(),
                   .detail = json.at("detail").get<std::string>(),
                   .begin_ns = json.at("begin").get<std::uint64_t>(),
                   .end_ns = json.at("end").get<std::uint64_t>(),
                   .bytes = json.at("bytes").get<std::uint64_t>(),
                   .items = json.at("items").get<std::uint64_t>(),
                   .cut = json.at("cut").get<bool>()};
  if (json.contains("save")) slice.save = Step{json.at("save").get<std::int64_t>()};
  if (json.contains("channel")) {
    slice.meeting =
        sim::Meeting{json.at("channel").get<std::uint64_t>(), json.at("call").get<std::uint64_t>()};
  }
  return slice;
}

sim::Instant take_instant(const Json& json) {
  return {.kind = json.at("instant").get<sim::InstantKind>(),
          .rank = GlobalRank{json.at("rank").get<std::int32_t>()},
          .at_ns = json.at("at").get<std::uint64_t>(),
          .name = json.at("name").get<std::string>(),
          .detail = json.at("detail").get<std::string>()};
}

struct Span {
  std::uint64_t begin_ns = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t end_ns = 0;

  void widen(std::uint64_t from_ns, std::uint64_t to_ns) {
    begin_ns = std::min(begin_ns, from_ns);
    end_ns = std::max(end_ns, to_ns);
  }
  bool empty() const { return begin_ns > end_ns; }
};

/// Adds one rank's file after another to a recording.
class Merge {
 public:
  explicit Merge(std::size_t slices_max) : slices_max_(slices_max) {}

  void take(const std::string& file, const RankRecord& record, std::uint64_t ended_ns) {
    rank_ = GlobalRank{record.result.rank};
    own_ = {};
    open_.clear();
    told_end_ = false;
    read(file);
    if (!told_end_) end(record, ended_ns);
    if (!own_.empty()) life_.widen(own_.begin_ns, own_.end_ns);
    drop_oldest();
  }

  /// Returns the whole, with times since the begin of the life.
  sim::Recording finish() {
    if (life_.empty()) life_ = {0, 0};
    for (auto& slice : all_.slices) {
      slice.begin_ns -= life_.begin_ns;
      slice.end_ns -= life_.begin_ns;
    }
    for (auto& instant : all_.instants) {
      instant.at_ns = std::max(instant.at_ns, life_.begin_ns) - life_.begin_ns;
    }
    std::stable_sort(
        all_.instants.begin(), all_.instants.end(),
        [](const sim::Instant& a, const sim::Instant& b) { return a.at_ns < b.at_ns; });
    all_.duration_ns = life_.end_ns - life_.begin_ns;
    sim::put_in_order(all_.slices);
    return std::move(all_);
  }

 private:
  void read(const std::string& file) {
    std::ifstream in(file);
    std::string line;
    // A line without its end is the one at which the rank was killed.
    for (std::size_t number = 1; std::getline(in, line) && !in.eof(); ++number) {
      try {
        add(Json::parse(line));
      } catch (const Json::exception& error) {
        all_.instants.push_back({sim::InstantKind::kLost, rank_, own_.end_ns, "unreadable",
                                 file + ", line " + std::to_string(number) + ": " + error.what()});
        return;
      }
    }
  }

  void add(const Json& line) {
    if (line.contains("instant")) {
      sim::Instant instant = take_instant(line);
      own_.widen(instant.at_ns, instant.at_ns);
      told_end_ = told_end_ || instant.kind == sim::InstantKind::kEnd;
      all_.instants.push_back(std::move(instant));
    } else if (line.contains("begun")) {
      sim::Slice slice = take_slice(line);
      own_.widen(slice.begin_ns, slice.begin_ns);
      open_.insert_or_assign(line.at("begun").get<std::uint64_t>(), std::move(slice));
    } else {
      open_.erase(line.at("over").get<std::uint64_t>());
      sim::Slice slice = take_slice(line);
      own_.widen(slice.begin_ns, slice.end_ns);
      all_.slices.push_back(std::move(slice));
    }
  }

  /// Ends a rank that could not tell its end, after the last thing that it told.
  void end(const RankRecord& record, std::uint64_t ended_ns) {
    if (record.ending == Ending::kReturned) return;
    if (record.ending == Ending::kHung && !own_.empty()) own_.widen(own_.begin_ns, ended_ns);
    for (auto& [number, slice] : open_) {
      slice.end_ns = own_.end_ns;
      slice.cut = true;
      all_.slices.push_back(std::move(slice));
    }
    all_.instants.push_back({sim::InstantKind::kEnd, rank_, own_.end_ns,
                             record.ending == Ending::kLost ? "killed" : name_of(record.ending),
                             record.message});
  }

  void drop_oldest() {
    auto& slices = all_.slices;
    if (slices.size() <= slices_max_) return;
    all_.left_out += slices.size() - slices_max_;
    std::stable_sort(slices.begin(), slices.end(),
                     [](const sim::Slice& a, const sim::Slice& b) { return a.end_ns < b.end_ns; });
    slices.erase(slices.begin(), std::prev(slices.end(), static_cast<std::ptrdiff_t>(slices_max_)));
  }

  std::size_t slices_max_;
  sim::Recording all_ = {.real_time = true};
  Span life_;
  GlobalRank rank_;
  Span own_;                                  ///< time in which the rank did something
  std::map<std::uint64_t, sim::Slice> open_;  ///< what the rank has begun, by number
  bool told_end_ = false;
};

}  // namespace

std::string trace_part_file(const std::string& records, std::int32_t rank) {
  return records + "/rank" + std::to_string(rank) + ".trace";
}

TracePart::TracePart(const std::string& file) : out_(file) {
  if (!out_) throw Error(Code::kIo, "can't be made: it is for the trace", {.file = file});
}

void TracePart::add(const char* state, std::uint64_t number, const sim::Slice& slice) {
  Json json = {{state, number},           {"slice", slice.kind}, {"rank", slice.rank.value},
               {"thread", slice.fiber},   {"name", slice.name},  {"detail", slice.detail},
               {"begin", slice.begin_ns}, {"end", slice.end_ns}, {"bytes", slice.bytes},
               {"items", slice.items},    {"cut", slice.cut}};
  if (slice.save) json["save"] = slice.save->value;
  if (slice.meeting) {
    json["channel"] = slice.meeting->channel;
    json["call"] = slice.meeting->sequence;
  }
  // A path may have bytes that are not UTF-8.
  write(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void TracePart::add(const sim::Instant& instant) {
  const Json json = {{"instant", instant.kind},
                     {"rank", instant.rank.value},
                     {"at", instant.at_ns},
                     {"name", instant.name},
                     {"detail", instant.detail}};
  write(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void TracePart::write(const std::string& line) { out_ << line << '\n' << std::flush; }

sim::Recording merged_parts(const std::string& records, const std::vector<RankRecord>& ranks,
                            std::uint64_t ended_ns, std::size_t slices_max) {
  Merge merge(slices_max);
  for (const auto& rank : ranks) {
    merge.take(trace_part_file(records, rank.result.rank), rank, ended_ns);
  }
  return merge.finish();
}

}  // namespace reprise::driver
