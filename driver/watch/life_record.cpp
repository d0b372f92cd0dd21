#include "driver/watch/life_record.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "driver/yaml/text_file.hpp"
#include "reports/read_error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::int64_t kVersion = 1;

std::string text_in(const Json& line, const char* name) { return line.value(name, std::string()); }

std::vector<std::string> texts_in(const Json& line, const char* name) {
  return line.value(name, std::vector<std::string>());
}

WatchedValues values_in(const Json& line, const char* name) {
  return line.value(name, WatchedValues());
}

Transfer transfer_in(const Json& line) {
  return {.step = line.at("step").get<std::int64_t>(),
          .by = text_in(line, "by"),
          .path = text_in(line, "path"),
          .asynchronous = line.value("asynchronous", false),
          .aside = !text_in(line, "thread").empty(),
          .leaves = values_in(line, "leaves"),
          .error = text_in(line, "error")};
}

/// Marks the save that a line of kind "saved" means: the newest of that path that is not complete.
void complete(const Json& line, std::vector<Transfer>& saves) {
  const std::string path = text_in(line, "path");
  const auto at = std::find_if(saves.rbegin(), saves.rend(), [&](const Transfer& save) {
    return !save.complete && save.path == path;
  });
  if (at != saves.rend()) at->complete = true;
}

void take_start(const Json& line, RankRecording& rank) {
  const auto version = line.at("version").get<std::int64_t>();
  if (version != kVersion) {
    throw reports::ReadError(rank.file + ": version " + std::to_string(version) +
                             " of the record is not one that this program reads");
  }
  rank.rank = line.at("rank").get<std::int64_t>();
  rank.world = line.value("world", std::int64_t{0});
  rank.digest = text_in(line, "digest");
  rank.whole = line.value("whole", false);
  rank.stand_ins = texts_in(line, "stand_ins");
}

void take(const Json& line, RankRecording& rank) {
  const auto what = line.at("what").get<std::string>();
  const auto step = [&line] { return line.at("step").get<std::int64_t>(); };
  if (what == "start") {
    take_start(line, rank);
  } else if (what == "held") {
    rank.held.push_back({step(), text_in(line, "why"), text_in(line, "at") == "end",
                         line.value("light", false), values_in(line, "names"),
                         values_in(line, "wholes")});
  } else if (what == "step") {
    rank.steps[step()] = {texts_in(line, "losses"), texts_in(line, "inputs"), texts_in(line, "lr"),
                          texts_in(line, "rows"), line.value("unseen", false)};
  } else if (what == "save") {
    rank.saves.push_back(transfer_in(line));
  } else if (what == "saved") {
    complete(line, rank.saves);
  } else if (what == "not_stored") {
    rank.not_stored.push_back({step(), text_in(line, "path"), texts_in(line, "names")});
  } else if (what == "load") {
    rank.loads.push_back(transfer_in(line));
  } else if (what == "not_judged") {
    rank.not_judged[text_in(line, "name")] = text_in(line, "why");
  } else if (what == "killed") {
    rank.killed = step();
    rank.killed_at = text_in(line, "at");
  } else if (what == "end") {
    rank.end = RecordedEnd{step(), text_in(line, "exit"), text_in(line, "error")};
  } else if (what == "hook_error") {
    rank.hook_errors.push_back(text_in(line, "where") + ": " + text_in(line, "error"));
  } else if (what == "outside") {
    rank.outside = text_in(line, "path");
  } else {
    rank.not_judged[what] = "this program does not know records of this kind";
  }
}

bool trained(const RankRecording& rank) { return !rank.held.empty() || !rank.steps.empty(); }

/// Adds a process. One that never trained, such as the parent of the ranks, gives way to one that
/// did.
void add(RankRecording rank, LifeRecording& life) {
  for (const auto& error : rank.hook_errors) {
    life.flaws.push_back("the hook failed in " + rank.file + ": " + error);
  }
  const auto [at, added] = life.ranks.try_emplace(rank.rank, rank);
  if (added || !trained(rank)) return;
  if (trained(at->second)) {
    life.flaws.push_back("two processes called themselves rank " + std::to_string(rank.rank) +
                         ": " + at->second.file + " and " + rank.file);
  } else {
    at->second = std::move(rank);
  }
}

}  // namespace

const HeldState* RankRecording::held_at(std::int64_t step) const {
  const HeldState* found = nullptr;
  for (const auto& state : held) {
    if (state.step != step || state.at_end) continue;
    if (found == nullptr || found->light || !state.light) found = &state;
  }
  return found;
}

const HeldState* RankRecording::held_at_end() const {
  return held.empty() || !held.back().at_end ? nullptr : &held.back();
}

std::int64_t RankRecording::last_step() const { return steps.empty() ? 0 : steps.rbegin()->first; }

std::int64_t LifeRecording::last_step() const {
  std::int64_t last = 0;
  for (const auto& [rank, recording] : ranks) last = std::max(last, recording.last_step());
  return last;
}

bool saves_asynchronously(const LifeRecording& life) {
  return std::ranges::any_of(life.ranks, [](const auto& rank) {
    return std::ranges::any_of(rank.second.saves, &Transfer::asynchronous);
  });
}

bool tells_wholes(const LifeRecording& life) {
  return !life.ranks.empty() &&
         std::ranges::all_of(life.ranks, [](const auto& rank) { return rank.second.whole; });
}

bool RankRecording::was_cut_at(const Transfer& save) const {
  return killed == save.step && killed_at.starts_with("save.written");
}

RankRecording parse_recording(const std::string& text, const std::string& file) {
  RankRecording rank{.file = file};
  bool started = false;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string_view line(text.data() + begin, std::min(end, text.size()) - begin);
    begin = end == std::string::npos ? text.size() : end + 1;
    ++number;
    if (line.empty()) continue;
    if (end == std::string::npos) {
      rank.torn = true;
      break;
    }
    try {
      const Json record = Json::parse(line);
      if (!started && record.at("what") != "start") {
        throw reports::ReadError(file + ": does not begin with a line of kind start");
      }
      take(record, rank);
    } catch (const nlohmann::json::exception& error) {
      throw reports::ReadError(file + ": line " + std::to_string(number) + ": " + error.what());
    }
    started = true;
  }
  if (!started) throw reports::ReadError(file + ": holds no whole line");
  return rank;
}

LifeRecording read_recordings(const std::string& folder) {
  static const std::regex kName("rank-[0-9]{1,9}-[0-9]{1,19}\\.jsonl");
  std::vector<fs::path> files;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    if (std::regex_match(entry.path().filename().string(), kName)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  LifeRecording life;
  for (const auto& file : files) {
    try {
      add(parse_recording(text_of(file), file.filename().string()), life);
    } catch (const reports::ReadError& error) {
      life.flaws.emplace_back(error.what());
    }
  }
  return life;
}

std::optional<std::uint64_t> elements_in(const std::string& value) {
  const auto open = value.find('[');
  const auto close = value.find(']', open);
  if (!value.starts_with('#') || open == std::string::npos || close == std::string::npos) {
    return std::nullopt;
  }
  std::uint64_t elements = 1;
  for (std::size_t at = open + 1; at < close;) {
    std::uint64_t size = 0;
    const auto [next, error] = std::from_chars(value.data() + at, value.data() + close, size);
    if (error != std::errc()) return std::nullopt;
    elements *= size;
    at = static_cast<std::size_t>(next - value.data());
    while (at < close && (value[at] == ',' || value[at] == ' ')) ++at;
  }
  return elements;
}

}  // namespace reprise::driver
