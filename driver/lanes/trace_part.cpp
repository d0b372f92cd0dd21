#include "driver/lanes/trace_part.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "driver/yaml/text_file.hpp"
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

/// Adds the lines of a part. A line without its end is the one at which the rank was killed.
void take_lines(std::string_view text, sim::Recording& recording) {
  for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const Json json = Json::parse(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (json.contains("slice")) {
      recording.slices.push_back(take_slice(json));
    } else {
      recording.instants.push_back(take_instant(json));
    }
  }
}

void take_part(const std::string& file, sim::Recording& recording) {
  if (!std::filesystem::exists(file)) return;
  try {
    take_lines(text_of(file), recording);
  } catch (const Json::exception& error) {
    throw Error(Code::kTornFile, std::string("no part of a trace: ") + error.what(),
                {.file = file});
  }
}

std::string_view name_of_end(Ending ending) {
  switch (ending) {
    case Ending::kReturned:
      return "returned";
    case Ending::kFailed:
      return "failed";
    case Ending::kDefect:
      return "defect";
    case Ending::kHung:
      return "hung";
    case Ending::kLost:
      return "killed";
  }
  return "killed";
}

struct Span {
  std::uint64_t begin_ns = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t end_ns = 0;
};

/// Returns the time in which a rank, or any rank, did something.
Span span_of(const sim::Recording& recording, std::optional<GlobalRank> rank = {}) {
  Span span;
  const auto widen = [&](GlobalRank of, std::uint64_t begin_ns, std::uint64_t end_ns) {
    if (rank && of != *rank) return;
    span = {std::min(span.begin_ns, begin_ns), std::max(span.end_ns, end_ns)};
  };
  for (const auto& slice : recording.slices) widen(slice.rank, slice.begin_ns, slice.end_ns);
  for (const auto& instant : recording.instants) widen(instant.rank, instant.at_ns, instant.at_ns);
  return span;
}

/// Adds the end of a rank that could not tell it, after the last thing that it told.
void add_end(const RankRecord& record, std::uint64_t begin_ns, sim::Recording& recording) {
  const GlobalRank rank{record.result.rank};
  const bool told = std::any_of(
      recording.instants.begin(), recording.instants.end(), [&](const sim::Instant& instant) {
        return instant.kind == sim::InstantKind::kEnd && instant.rank == rank;
      });
  if (told || record.ending == Ending::kReturned) return;
  recording.instants.push_back({sim::InstantKind::kEnd, rank,
                                std::max(begin_ns, span_of(recording, rank).end_ns),
                                std::string(name_of_end(record.ending)), record.message});
}

/// Drops the slices that ended first, if there are more than `most`.
void drop_oldest(std::size_t most, sim::Recording& recording) {
  auto& slices = recording.slices;
  if (slices.size() <= most) return;
  recording.left_out = slices.size() - most;
  std::stable_sort(slices.begin(), slices.end(),
                   [](const sim::Slice& a, const sim::Slice& b) { return a.end_ns < b.end_ns; });
  slices.erase(slices.begin(), std::prev(slices.end(), static_cast<std::ptrdiff_t>(most)));
}

}  // namespace

std::string trace_part_file(const std::string& records, std::int32_t rank) {
  return records + "/rank" + std::to_string(rank) + ".trace";
}

void TracePart::add(const sim::Slice& slice) {
  Json json = {{"slice", slice.kind}, {"rank", slice.rank.value}, {"thread", slice.fiber},
               {"name", slice.name},  {"detail", slice.detail},   {"begin", slice.begin_ns},
               {"end", slice.end_ns}, {"bytes", slice.bytes},     {"items", slice.items},
               {"cut", slice.cut}};
  if (slice.save) json["save"] = slice.save->value;
  if (slice.meeting) {
    json["channel"] = slice.meeting->channel;
    json["call"] = slice.meeting->sequence;
  }
  // A path may have bytes that are no text.
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
                            std::size_t slices_max) {
  sim::Recording recording{.real_time = true};
  for (const auto& rank : ranks) take_part(trace_part_file(records, rank.result.rank), recording);
  const Span life = span_of(recording);
  if (life.begin_ns > life.end_ns) return recording;
  for (const auto& rank : ranks) add_end(rank, life.begin_ns, recording);
  for (auto& slice : recording.slices) {
    slice.begin_ns -= life.begin_ns;
    slice.end_ns -= life.begin_ns;
  }
  for (auto& instant : recording.instants) instant.at_ns -= life.begin_ns;
  std::stable_sort(recording.instants.begin(), recording.instants.end(),
                   [](const sim::Instant& a, const sim::Instant& b) { return a.at_ns < b.at_ns; });
  recording.duration_ns = life.end_ns - life.begin_ns;
  drop_oldest(slices_max, recording);
  sim::put_in_order(recording.slices);
  return recording;
}

}  // namespace reprise::driver
