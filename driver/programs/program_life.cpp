#include "driver/programs/program_life.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/print.hpp"
#include "driver/lanes/command_run.hpp"
#include "driver/lanes/package_folders.hpp"
#include "driver/lanes/process.hpp"
#include "driver/lanes/scratch_directory.hpp"
#include "driver/programs/free_port.hpp"
#include "driver/yaml/text_file.hpp"
#include "reports/read_error.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr auto kAfterFailure = std::chrono::seconds(10);
constexpr auto kAfterKill = std::chrono::seconds(3);
constexpr std::uint64_t kNeedsDeadlineS = 60;
/// A life whose ranks still report something may take this many times its deadline.
constexpr std::int64_t kProgressFactor = 10;
constexpr const char* kPrograms = "{programs}";

Json json_of(const ProgramStep& step) {
  Json action = {{"do", std::string(name_of(step.does))}};
  if (step.does == ProgramDoes::kTrain) action["steps"] = step.steps;
  if (step.async) action["async"] = *step.async;
  return action;
}

/// Returns the value of each option of the trainer: the scenario's value, or else the default.
Json options_json(const TrainerFile& trainer, const ProgramLife& life) {
  Json options = Json::object();
  for (const auto& option : trainer.options) {
    const auto given = life.options.find(option.name);
    options[option.name] = given == life.options.end() ? option.values[0] : given->second;
  }
  return options;
}

Json load_json(const LifeRequest& request) {
  if (request.loads == Loads::kNothing) return nullptr;
  if (request.loads == Loads::kNewest) return {{"step", nullptr}};
  return {{"step", request.cold_step}, {"cold", true}};
}

Json plan_json(const LifeRequest& request) {
  Json actions = Json::array();
  for (const auto& step : request.life.steps) actions.push_back(json_of(step));
  Json kill = nullptr;
  if (const auto& planned = request.life.kill) {
    kill = {
        {"rank", planned->rank}, {"phase", planned->phase}, {"occurrence", planned->occurrence}};
  }
  Json faults = Json::object();
  if (const auto& rerun = request.life.rerun) {
    faults["rerun"] = {{"iteration", rerun->iteration}, {"kind", name_of(rerun->kind)}};
    if (rerun->rank) faults["rerun"]["rank"] = *rerun->rank;
  }
  return {{"life", request.number},
          {"load", load_json(request)},
          {"options", options_json(request.trainer, request.life)},
          {"actions", std::move(actions)},
          {"kill", std::move(kill)},
          {"faults", std::move(faults)}};
}

std::string python_of(const ProgramPlace& place) {
  return place.python.empty() ? "python3" : place.python;
}

std::string word_of(const std::string& word, const ProgramPlace& place) {
  if (word == "python3") return python_of(place);
  if (!word.starts_with(kPrograms)) return word;
  return place.programs + word.substr(std::string_view(kPrograms).size());
}

/// Returns the beginning of an `env` command; variables and a program may be appended. Compiled
/// Python files go to a directory that all runs share. Otherwise, each run would compile all of
/// torch again.
std::vector<std::string> environment_words(const std::string& folder) {
  std::vector<std::string> words = {
      "env", "-u", "PYTHONDONTWRITEBYTECODE", "-u", "REPRISE_WITNESS_PID", "-C", folder};
  if (const char* home = std::getenv("HOME")) {
    words.push_back("PYTHONPYCACHEPREFIX=" + std::string(home) + "/.cache/reprise/pycache");
  }
  return words;
}

/// Returns PYTHONPATH with the Python package that is beside this program, so that a trainer finds
/// the witness where the package is not installed. Empty if there is none.
std::string python_path(const ProgramPlace& place) {
  const fs::path beside = fs::absolute(place.reprise).parent_path();
  for (const auto& folder : kPackageFolders) {
    const fs::path package = (beside / folder).lexically_normal();
    if (!fs::exists(package / "witness.py")) continue;
    const char* given = std::getenv("PYTHONPATH");
    const std::string first = given == nullptr || *given == '\0' ? "" : std::string(given) + ":";
    return first + package.parent_path().string();
  }
  return "";
}

/// Says where a deadline comes from.
std::string limit_text(bool follows_first, bool progressing) {
  const std::int64_t times =
      (follows_first ? kSilenceFactor : 1) * (progressing ? kProgressFactor : 1);
  return (times > 1 ? std::to_string(times) + " times " : "") +
         (follows_first ? "the longest silence of the first life" : "trainer.yaml: seconds");
}

/// Measures the longest time in which a count did not change. May be told from any thread.
class SilenceMeter {
 public:
  void note(std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    longest_ = std::max(longest_, now - since_);
    if (count <= count_) return;
    count_ = count;
    since_ = now;
  }
  double longest_s() const { return std::chrono::duration<double>(longest_).count(); }

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  Clock::time_point since_ = Clock::now();
  Clock::duration longest_ = {};
  std::uint64_t count_ = 0;
};

/// Runs the ranks of one life as processes. Each process has a thread that waits for it to end.
class RunningLife {
 public:
  explicit RunningLife(const LifeRequest& request)
      : request_(request),
        world_(static_cast<std::size_t>(request.trainer.world_of(request.life.layout))),
        work_(fs::absolute(request.work)),
        port_(free_port()) {
    for (const char* folder : {"checkpoints", "witness", "plans"}) {
      fs::create_directories(work_ / folder);
    }
    std::ofstream(plan_file()) << plan_json(request).dump(2) << '\n';
    for (std::size_t rank = 0; rank < world_; ++rank) {
      fs::remove(witness_file(work_.string(), request.number, rank, ".jsonl"));
      fs::remove(log_file(rank));
    }
  }

  LifeEvidence run() {
    LifeEvidence evidence;
    evidence.plan = request_.life;
    evidence.ends.resize(world_);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < world_; ++rank) {
      threads.emplace_back([this, rank, &evidence] { evidence.ends[rank] = rank_main(rank); });
    }
    for (auto& thread : threads) thread.join();
    evidence.longest_silence = silence_.longest_s();
    for (std::size_t rank = 0; rank < world_; ++rank) {
      const std::string file = witness_file(work_.string(), request_.number, rank, ".jsonl");
      read_witness(file, evidence.ends[rank], evidence);
    }
    return evidence;
  }

 private:
  std::string plan_file() const {
    return (work_ / "plans" / ("life" + std::to_string(request_.number) + ".json")).string();
  }
  std::string log_file(std::size_t rank) const {
    return (work_ / "plans" /
            ("life" + std::to_string(request_.number) + "-rank" + std::to_string(rank) + ".log"))
        .string();
  }

  std::vector<std::string> command(std::size_t rank) const {
    std::vector<std::string> words = environment_words(request_.trainer.folder);
    const auto set = [&words](const std::string& name, const std::string& value) {
      words.push_back(name + "=" + value);
    };
    set("RANK", std::to_string(rank));
    set("LOCAL_RANK", std::to_string(rank));
    set("WORLD_SIZE", std::to_string(world_));
    set("MASTER_ADDR", "127.0.0.1");
    set("MASTER_PORT", std::to_string(port_));
    set("OMP_NUM_THREADS", "1");
    set("REPRISE_LAYOUT", Json(request_.life.layout).dump());
    set("REPRISE_SEED", std::to_string(request_.seed));
    set("REPRISE_PLAN", plan_file());
    set("REPRISE_CHECKPOINTS", checkpoints_in(work_.string()));
    set("REPRISE_WITNESS", (work_ / "witness").string());
    set("REPRISE_WITNESS_VALUES", request_.values);
    set("REPRISE_PROGRAMS", fs::absolute(request_.place.programs).string());
    const std::string path = python_path(request_.place);
    if (!path.empty()) set("PYTHONPATH", path);
    const fs::path library = fs::path(request_.place.programs) / "libreprise_witness.so";
    if (fs::exists(library)) set("REPRISE_WITNESS_LIBRARY", fs::absolute(library).string());
    for (const auto& word : request_.trainer.command)
      words.push_back(word_of(word, request_.place));
    return words;
  }

  /// Returns nothing until a rank has failed. After that, returns how long the other ranks may
  /// still run, so that they can notice the failure. A rank that writes its witness into a pipe
  /// would wait for a reader for ever, so no rank runs on.
  std::optional<std::chrono::seconds> grace() const {
    if (no_file_) return std::chrono::seconds(0);
    const int failed = failed_;
    if (failed == 0) return std::nullopt;
    return failed == 128 + SIGKILL ? kAfterKill : kAfterFailure;
  }

  /// Returns how much the ranks have reported so far.
  std::uint64_t told_bytes() {
    std::uint64_t bytes = 0;
    for (std::size_t rank = 0; rank < world_; ++rank) {
      const std::string file = witness_file(work_.string(), request_.number, rank, ".jsonl");
      std::error_code missing;
      const auto status = fs::status(file, missing);
      if (fs::exists(status) && !fs::is_regular_file(status)) no_file_ = true;
      const auto size = fs::is_regular_file(status) ? fs::file_size(file, missing) : 0;
      if (!missing) bytes += size;
    }
    silence_.note(bytes);
    return bytes;
  }

  ProgramEnd rank_main(std::size_t rank) {
    ProgramEnd end;
    try {
      const std::int64_t limit = std::max(request_.trainer.seconds, request_.silence_s_max);
      const auto seconds = static_cast<std::uint64_t>(limit);
      const ProcessEnd ended = run_process(command(rank), log_file(rank),
                                           {.deadline_s = seconds,
                                            .progress = [this] { return told_bytes(); },
                                            .progress_s_max = seconds * kProgressFactor,
                                            .grace = [this] { return grace(); }});
      end = {.exit_code = ended.exit_code,
             .timed_out = ended.timed_out,
             .cut_short = ended.cut_short,
             .left_some = ended.left_some,
             .progressing = ended.progressing,
             .seconds = limit * (ended.progressing ? kProgressFactor : 1),
             .limit = limit_text(limit > request_.trainer.seconds, ended.progressing)};
    } catch (const Error& error) {
      end.exit_code = 127;
      std::ofstream(log_file(rank), std::ios::app) << error.what();
    }
    int none = 0;
    if (end.exit_code != 0 && end.exit_code != request_.life.exit) {
      failed_.compare_exchange_strong(none, end.exit_code);
    }
    end.log = tail_of(log_file(rank));
    return end;
  }

  const LifeRequest& request_;
  std::size_t world_;
  fs::path work_;
  int port_;
  std::atomic<int> failed_ = 0;
  std::atomic<bool> no_file_ = false;  ///< true if a witness file is a pipe, a folder or the like
  SilenceMeter silence_;
};

/// Asks the interpreter for the versions of the packages that the trainer needs. Returns a message
/// about the first problem; empty if there is none.
std::string ask_versions(const TrainerFile& trainer, const ProgramPlace& place) {
  // Local parts of versions, such as +cu132, are not compared: torch prints them, and its metadata
  // may lack them. A version without an operator means just that version.
  constexpr const char* kAsk =
      "import importlib.metadata as m, re, sys\n"
      "try:\n"
      "    from packaging.specifiers import InvalidSpecifier, SpecifierSet\n"
      "except ImportError:\n"
      "    try:\n"
      "        from pip._vendor.packaging.specifiers import InvalidSpecifier, SpecifierSet\n"
      "    except ImportError:\n"
      "        sys.exit(print('it needs the package packaging (pip install packaging), to compare "
      "versions'))\n"
      "for need in sys.argv[1:]:\n"
      "    name, wanted = need.split(' ', 1)\n"
      "    public = re.sub(r'\\+[\\w.]+', '', wanted)\n"
      "    try:\n"
      "        fits = SpecifierSet(','.join('==' + p if p.strip()[:1].isdigit() else p for p in "
      "public.split(',')))\n"
      "    except InvalidSpecifier:\n"
      "        print(f'trainer.yaml needs {name} {wanted!r}, which is not a version specifier')\n"
      "        continue\n"
      "    try:\n"
      "        found = m.version(name)\n"
      "    except m.PackageNotFoundError:\n"
      "        print(f'{name} {wanted} is needed but not installed')\n"
      "        continue\n"
      "    if not fits.contains(found, prereleases=True):\n"
      "        print(f'{name} {wanted} is needed but {found} is installed')\n";
  std::vector<std::string> words = {python_of(place), "-c", kAsk};
  for (const auto& [package, version] : trainer.needs) words.push_back(package + " " + version);
  const ScratchDirectory scratch;
  const std::string log = scratch.path() + "/log";
  try {
    const ProcessEnd end = run_process(words, log, {.deadline_s = kNeedsDeadlineS});
    const std::string said = text_of(log);
    if (end.exit_code != 0) return python_of(place) + " does not run: " + tail_of(log);
    return said.substr(0, said.find('\n'));
  } catch (const Error& error) {
    return error.message();
  }
}

}  // namespace

std::string checkpoints_in(const std::string& work) {
  return (fs::path(work) / "checkpoints").string();
}

std::string witness_file(const std::string& work, std::size_t life, std::size_t rank,
                         const std::string& suffix) {
  return (fs::path(work) / "witness" /
          ("life" + std::to_string(life) + "-rank" + std::to_string(rank) + suffix))
      .string();
}

std::int64_t silence_limit(std::int64_t seconds, double first_silence) {
  const double wanted = std::ceil(static_cast<double>(kSilenceFactor) * first_silence);
  return std::max(seconds, static_cast<std::int64_t>(wanted));
}

void read_witness(const std::string& file, const ProgramEnd& end, LifeEvidence& life) {
  const std::string shown = fs::path(file).filename().string();
  life.ranks.emplace_back();
  if (!fs::exists(file)) {
    // If the rank failed, its exit code already reports that.
    if (end.exit_code == 0) {
      life.unread.push_back({.code = judged::kOracleVacuous, .text = shown + " was not written"});
    }
    return;
  }
  if (!fs::is_regular_file(file)) {
    life.unread.push_back({.code = judged::kOracleVacuous,
                           .text = shown + " is not a regular file, so it can't be a witness"});
    return;
  }
  try {
    life.ranks.back() = parse_witness(text_of(file), shown);
  } catch (const reports::ReadError& error) {
    life.unread.push_back({.code = Code::kTornFile, .text = error.what()});
    return;
  }
  // The last line may be incomplete only if a signal ended the process.
  if (life.ranks.back().torn && end.exit_code <= 128 && !end.cut_short) {
    life.unread.push_back(
        {.code = Code::kTornFile, .text = shown + " ends in the middle of a line"});
  }
}

LifeEvidence run_program_life(const LifeRequest& request) { return RunningLife(request).run(); }

LifeEvidence run_command_life(const ProgramLife& life, const std::string& work,
                              const ProgramPlace& place) {
  LifeEvidence evidence;
  evidence.plan = life;
  evidence.plan.exit = life.command->exits;
  const CommandEnd end = run_command(*life.command, checkpoints_in(work), place.reprise);
  evidence.ends.push_back({.exit_code = end.process.exit_code,
                           .timed_out = end.process.timed_out,
                           .cut_short = end.process.cut_short,
                           .left_some = end.process.left_some,
                           .log = end.log});
  evidence.complaint = complaint_of(*life.command, end);
  return evidence;
}

std::optional<std::string> why_no_trainer(const TrainerFile& trainer, const ProgramPlace& place) {
  const std::string program = word_of(trainer.command.front(), place);
  if (trainer.command.front().starts_with(kPrograms) && !fs::exists(program)) {
    return "the trainer " + trainer.name + " is not built here: there is no " + program;
  }
  const bool python = trainer.command.front() == "python3";
  if (!python && trainer.needs.empty()) return std::nullopt;
  const std::string complaint = ask_versions(trainer, place);
  if (complaint.empty()) return std::nullopt;
  return "the trainer " + trainer.name + " can't run here: " + complaint;
}

}  // namespace reprise::driver
