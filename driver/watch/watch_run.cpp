#include "driver/watch/watch_run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/print.hpp"
#include "driver/lanes/process.hpp"
#include "driver/lanes/process_table.hpp"
#include "driver/yaml/text_file.hpp"
#include "reports/read_error.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

/// A later life may be silent for this many times the longest silence of life A.
constexpr std::int64_t kSilenceFactor = 4;
constexpr std::int64_t kSilenceLeast = 60;
/// A life that keeps writing may last this many times as long as life A, and an hour more.
constexpr std::int64_t kLongerFactor = 4;
constexpr std::int64_t kLongerSlack = 3600;
constexpr std::int64_t kControlSecondsMax = std::int64_t{14} * 86400;
/// The rest of a job that was killed has so long to end by itself; launchers send SIGTERM first.
constexpr auto kAfterKill = std::chrono::seconds(40);
constexpr std::size_t kLogLines = 12;
constexpr std::size_t kLogLineMost = 300;
constexpr const char* kRepeatName = "R";

std::string life_letter(std::size_t number) {
  return std::string(1, static_cast<char>('A' + number));
}

/// Returns the last lines of a file of output.
std::string last_lines(const fs::path& file) {
  std::vector<std::string> lines;
  std::istringstream text(text_of(file));
  for (std::string line; std::getline(text, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (line.size() > kLogLineMost) line = line.substr(0, kLogLineMost) + "...";
    lines.push_back(line);
  }
  std::string shown;
  const std::size_t first = lines.size() - std::min(lines.size(), kLogLines);
  for (std::size_t i = first; i < lines.size(); ++i) {
    shown += (i > first ? "\n" : "") + lines[i];
  }
  return shown;
}

/// True if the last lines of the file have a record of a kill.
bool tells_kill(const fs::path& file) {
  constexpr std::streamoff kTail = 4096;
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  const std::streamoff size = in.tellg();
  if (size <= 0) return false;
  in.seekg(std::max<std::streamoff>(0, size - kTail));
  const std::string tail(std::istreambuf_iterator<char>(in), {});
  return tail.find("\"killed\"") != std::string::npos;
}

/// What a life has written so far, and how long it was silent at most.
class LifeMeter {
 public:
  LifeMeter(fs::path records, fs::path log) : records_(std::move(records)), log_(std::move(log)) {}

  std::uint64_t bytes() {
    std::uint64_t bytes = size_of(log_);
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(records_, missing)) {
      bytes += size_of(entry.path());
    }
    const auto now = Clock::now();
    longest_ = std::max(longest_, now - since_);
    if (bytes != bytes_) since_ = now;
    bytes_ = bytes;
    return bytes;
  }
  bool killed() const {
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(records_, missing)) {
      if (tells_kill(entry.path())) return true;
    }
    return false;
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double longest_s() const { return std::chrono::duration<double>(longest_).count(); }

 private:
  static std::uint64_t size_of(const fs::path& file) {
    std::error_code missing;
    const auto size = fs::file_size(file, missing);
    return missing ? 0 : size;
  }

  fs::path records_;
  fs::path log_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point since_ = start_;
  Clock::duration longest_ = {};
  std::uint64_t bytes_ = 0;
};

struct LifePlan {
  std::string name;
  std::size_t number = 0;
  bool resumes = false;
  bool killed = false;
};

class WatchRun {
 public:
  WatchRun(const WatchRequest& request, const WatchListener& listener,
           const std::function<bool()>& interrupted)
      : request_(request), listener_(listener), interrupted_(interrupted), kill_(request.kill) {}

  WatchOutcome run() {
    fs::create_directories(request_.folder);
    outcome_.lives.resume_words = request_.resume_words;
    run_control();
    if (done_) return finish();
    for (std::size_t i = 1; i < request_.lives && !done_; ++i) {
      const bool last = i + 1 == request_.lives;
      if (i == 1) make_tree();
      outcome_.lives.resumed.push_back(
          run_life({.name = life_letter(i), .number = i, .resumes = i > 1, .killed = !last}));
      write_plan();
      done_ = done_ || stopped_early(outcome_.lives.resumed.back(), last);
    }
    remove_tree("resumed");
    outcome_.judgement = judge_watch(outcome_.lives);
    if (outcome_.judgement.wants_repeat && !done_) {
      make_tree();
      outcome_.lives.repeat = run_life({.name = kRepeatName, .number = request_.lives});
      remove_tree(kRepeatName);
      write_plan();
      outcome_.judgement = judge_watch(outcome_.lives);
    }
    return finish();
  }

 private:
  fs::path tree() const { return fs::path(request_.work) / "work"; }
  fs::path records_of(const std::string& life) const { return fs::path(request_.folder) / life; }
  fs::path log_of(const std::string& life) const {
    return fs::path(request_.folder) / (life + ".log");
  }

  WatchOutcome finish() {
    outcome_.interrupted = interrupted_();
    if (outcome_.lives.resumed.empty()) outcome_.judgement = judge_watch(outcome_.lives);
    return std::move(outcome_);
  }

  /// Runs life A, and chooses the step of the kill.
  void run_control() {
    make_tree();
    outcome_.lives.uninterrupted = run_life({.name = "A", .number = 0});
    remove_tree("A");
    if (!judge_control(outcome_.lives.uninterrupted).empty()) done_ = true;
    const LifeRecording& a = outcome_.lives.uninterrupted.recording;
    if (!kill_) kill_ = choose_kill(a, request_.kill_moment);
    outcome_.lives.kill_asynchronous = request_.kill_moment == KillMoment::kAsynchronous;
    if (outcome_.lives.kill_asynchronous && !saves_asynchronously(a)) kill_.reset();
    outcome_.lives.kill = kill_;
    write_plan();
    done_ = done_ || !kill_ || interrupted_();
  }

  /// True if what follows this life would show nothing.
  bool stopped_early(const WatchedLife& life, bool last) const {
    if (interrupted_()) return true;
    const bool killed = std::ranges::any_of(
        life.recording.ranks, [](const auto& rank) { return rank.second.killed.has_value(); });
    return !last && !killed;
  }

  void make_tree() {
    if (request_.source.in_place) {
      fs::create_directory(tree());
    } else {
      copy_work_tree(request_.source, tree());
    }
  }

  /// Every life has the same path for its working directory. Moves it away, or removes it.
  void remove_tree(const std::string& name) const {
    if (request_.keep_work) {
      fs::rename(tree(), fs::path(request_.work) / name);
    } else {
      fs::remove_all(tree());
    }
  }

  std::vector<std::string> words_of(const LifePlan& plan) const {
    const fs::path directory = request_.source.in_place ? request_.source.directory : tree();
    std::vector<std::string> words = {"env", "-C", directory.string()};
    const auto set = [&words](const std::string& name, const std::string& value) {
      words.push_back(name + "=" + value);
    };
    const char* const path = std::getenv("PYTHONPATH");
    set("PYTHONPATH",
        request_.hook + (path == nullptr || *path == '\0' ? "" : ":" + std::string(path)));
    set("PWD", directory.string());
    set("REPRISE_WATCH", request_.folder);
    set("REPRISE_WATCH_LIFE", plan.name);
    set("REPRISE_WATCH_WORK", tree().string());
    if (request_.every_step) set("REPRISE_WATCH_EVERY_STEP", "1");
    if (!request_.other_command.empty()) set("REPRISE_WATCH_WHOLE", "1");
    if (!request_.stand_ins.empty()) set("REPRISE_WATCH_STANDIN", join(request_.stand_ins, ":"));
    if (plan.killed) {
      set("REPRISE_WATCH_KILL", kill_json().dump());
    }
    for (const auto& word : words_in(request_.source, tree(), command_of(plan))) {
      const bool python = word == "python" || word == "python3";
      words.push_back(python && !request_.python.empty() ? request_.python : word);
    }
    return words;
  }

  Json kill_json() const {
    Json kill = {{"step", *kill_}};
    switch (request_.kill_moment) {
      case KillMoment::kBetween:
        kill["asynchronous"] = "complete";
        break;
      case KillMoment::kSaveBegins:
        kill["phase"] = "save.begin";
        break;
      case KillMoment::kSaveWritten:
        kill["phase"] = "save.written";
        break;
      case KillMoment::kAsynchronous:
        kill["asynchronous"] = "during";
        break;
    }
    return kill;
  }

  std::vector<std::string> command_of(const LifePlan& plan) const {
    std::vector<std::string> words;
    bool placed = false;
    const bool other = plan.resumes && !request_.other_command.empty();
    for (const auto& word : other ? request_.other_command : request_.command) {
      if (word != "{resume}") {
        words.push_back(word);
        continue;
      }
      placed = true;
      if (plan.resumes) std::ranges::copy(request_.resume_words, std::back_inserter(words));
    }
    if (plan.resumes && !placed)
      std::ranges::copy(request_.resume_words, std::back_inserter(words));
    return words;
  }

  /// Says for how long a life may be silent, and where the number comes from.
  std::pair<std::int64_t, std::string> silence_of(const LifePlan& plan) const {
    const auto followed = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(kSilenceFactor) * control_silence_));
    if (plan.number == 0) {
      return {request_.silence_s_max,
              std::to_string(request_.silence_s_max) + " s without record or output (--timeout)"};
    }
    const std::int64_t seconds = std::max(kSilenceLeast, followed);
    return {seconds, std::to_string(seconds) + " s without record or output" +
                         (followed >= kSilenceLeast
                              ? " (" + std::to_string(kSilenceFactor) + " times that of life A)"
                              : "")};
  }

  WatchedLife run_life(const LifePlan& plan) {
    const fs::path log = log_of(plan.name);
    fs::create_directories(records_of(plan.name));
    LifeMeter meter(records_of(plan.name), log);
    const auto [silence, why] = silence_of(plan);
    const auto longest =
        plan.number == 0
            ? kControlSecondsMax
            : kLongerSlack + kLongerFactor * static_cast<std::int64_t>(std::ceil(control_seconds_));
    ProcessLimits limits{.deadline_s = static_cast<std::uint64_t>(silence),
                         .progress_s_max = static_cast<std::uint64_t>(longest)};
    limits.progress = [&] {
      const std::uint64_t bytes = meter.bytes();
      listener_({plan.name, plan.number, request_.lives, meter.seconds(), bytes});
      return bytes;
    };
    limits.grace = [&]() -> std::optional<std::chrono::seconds> {
      if (!plan.killed || !meter.killed()) return std::nullopt;
      return kAfterKill;
    };
    WatchedLife life{.name = plan.name};
    const ProcessEnd end = run_process(words_of(plan), log.string(), limits);
    end_the_rest();
    if (plan.number == 0) {
      control_silence_ = meter.longest_s();
      control_seconds_ = meter.seconds();
    }
    life.exit = CommandExit{
        .exit_code = end.exit_code,
        .timed_out = end.timed_out,
        .deadline = end.progressing ? std::to_string(longest) + " s, far longer than life A" : why,
        .log = last_lines(log)};
    life.recording = read_recordings(records_of(plan.name).string());
    return life;
  }

  /// Ends processes of a life that left its process group, as the workers of some launchers do.
  void end_the_rest() const { end_processes_with("REPRISE_WATCH=" + request_.folder); }

  /// Writes what the records themselves do not say.
  void write_plan() const {
    Json lives = Json::object();
    const auto add = [&lives](const WatchedLife& life) {
      if (!life.exit) return;
      lives[life.name] = {{"exit_code", life.exit->exit_code},
                          {"timed_out", life.exit->timed_out},
                          {"deadline", life.exit->deadline},
                          {"log", life.exit->log}};
    };
    add(outcome_.lives.uninterrupted);
    for (const auto& life : outcome_.lives.resumed) add(life);
    if (outcome_.lives.repeat) add(*outcome_.lives.repeat);
    const Json plan = {{"command", request_.command},
                       {"other_command", request_.other_command},
                       {"resume", request_.resume_words},
                       {"asynchronous", outcome_.lives.kill_asynchronous},
                       {"kill", kill_ ? Json(*kill_) : Json(nullptr)},
                       {"lives", lives}};
    const fs::path file = fs::path(request_.folder) / "watch.json";
    std::ofstream out(file);
    out << plan.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    if (!out.flush()) throw Error(Code::kIo, "can't be written", {.file = file.string()});
  }

  const WatchRequest& request_;
  const WatchListener& listener_;
  const std::function<bool()>& interrupted_;
  std::optional<std::int64_t> kill_;
  WatchOutcome outcome_;
  double control_silence_ = 0;
  double control_seconds_ = 0;
  bool done_ = false;
};

WatchedLife life_in(const fs::path& folder, const std::string& name, const Json& plan) {
  WatchedLife life{.name = name, .recording = read_recordings((folder / name).string())};
  if (!plan.contains("lives") || !plan["lives"].contains(name)) return life;
  const Json& exit = plan["lives"][name];
  life.exit = CommandExit{.exit_code = exit.at("exit_code").get<int>(),
                          .timed_out = exit.at("timed_out").get<bool>(),
                          .deadline = exit.at("deadline").get<std::string>(),
                          .log = exit.at("log").get<std::string>()};
  return life;
}

}  // namespace

WatchOutcome run_watch(const WatchRequest& request, const WatchListener& listener,
                       const std::function<bool()>& interrupted) {
  return WatchRun(request, listener, interrupted).run();
}

std::optional<std::int64_t> choose_kill(const LifeRecording& uninterrupted, KillMoment moment) {
  const std::int64_t last = uninterrupted.last_step();
  std::set<std::int64_t> saves;
  for (const auto& [rank, recording] : uninterrupted.ranks) {
    for (const auto& save : recording.saves) {
      const bool tensors = std::ranges::any_of(
          save.leaves, [](const auto& leaf) { return elements_in(leaf.second).has_value(); });
      const bool meant = moment != KillMoment::kAsynchronous || save.asynchronous;
      if (tensors && meant && save.step > 0) saves.insert(save.step);
    }
  }
  const bool between = moment == KillMoment::kBetween;
  // A kill in a save needs an earlier one to resume from.
  const bool earlier = !between && moment != KillMoment::kSaveWritten;
  if (earlier && !saves.empty()) saves.erase(saves.begin());
  for (const std::int64_t left : {2, 1}) {
    const auto after = saves.upper_bound(last - left);
    if (after != saves.begin()) return *std::prev(after) + (between ? 1 : 0);
  }
  return std::nullopt;
}

WatchedLives read_lives(const std::string& folder) {
  const fs::path root(folder);
  if (!fs::is_directory(root / "A")) {
    throw Error(Code::kUsage, "holds no records: it has no folder A", {.file = folder});
  }
  WatchedLives lives;
  try {
    const std::string text = text_of(root / "watch.json");
    const Json plan = text.empty() ? Json::object() : Json::parse(text);
    lives.uninterrupted = life_in(root, "A", plan);
    for (std::size_t i = 1; fs::is_directory(root / life_letter(i)) && i < 17; ++i) {
      lives.resumed.push_back(life_in(root, life_letter(i), plan));
    }
    if (fs::is_directory(root / kRepeatName)) lives.repeat = life_in(root, kRepeatName, plan);
    lives.kill_asynchronous = plan.value("asynchronous", false);
    lives.resume_words = plan.value("resume", std::vector<std::string>());
    if (plan.contains("kill") && plan["kill"].is_number()) {
      lives.kill = plan["kill"].get<std::int64_t>();
    }
  } catch (const nlohmann::json::exception& error) {
    throw reports::ReadError((root / "watch.json").string() + ": " + error.what());
  }
  return lives;
}

}  // namespace reprise::driver
