#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "cli/arguments/shell_words.hpp"
#include "cli/frame/interrupts.hpp"
#include "cli/frame/verb.hpp"
#include "cli/output/progress_line.hpp"
#include "cli/output/watch_text.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/base/print.hpp"
#include "core/base/shell_word.hpp"
#include "driver/lanes/scratch_directory.hpp"
#include "driver/runs/run.hpp"
#include "driver/watch/hook_place.hpp"
#include "driver/watch/watch_result.hpp"
#include "driver/watch/watch_run.hpp"
#include "reports/retries.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kSecondsPerLine = 60;

class WatchVerb final : public Verb {
 public:
  std::string_view name() const override { return "watch"; }
  std::string_view summary() const override {
    return "Kill and resume a training command as it is, and judge the resume";
  }
  std::string_view examples() const override {
    return "  reprise watch -- python train.py --steps 12      resumes by itself if it finds a "
           "checkpoint\n"
           "  reprise watch --kill 7 --resume-args=--resume -- torchrun --nproc-per-node 2 "
           "train.py\n"
           "  reprise watch --resume-args '--ckpt {work}/out/last.ckpt' -- python fit.py --out "
           "out\n"
           "  reprise watch --resume-args=--resume --at 'torchrun --nproc-per-node 4 train.py' -- "
           "torchrun --nproc-per-node 2 train.py\n"
           "  reprise watch --kill-in async --resume-args=--resume -- python train.py\n"
           "  reprise watch --link data --without old-runs --report out -- python train.py\n"
           "  reprise watch --in-place -- python train.py --out {work}/ckpt\n"
           "  reprise watch --record records -- python train.py     keep what was recorded\n"
           "  reprise watch --judge records                         judge records made elsewhere\n";
  }
  void declare(Options& options) override {
    options.optional_positional(command_, "COMMAND", "after --: the training command, as it is")
        .number(kill_, "--kill", 0,
                "kill a life after N steps that it made; default: one step after the last save of "
                "life A that leaves steps to compare")
        .text(
            moment_, "--kill-in", "save|written|async",
            "kill it within the first save from that step on: when it was handed over, when it is "
            "complete, or while an asynchronous one is on its way")
        .text(resume_args_, "--resume-args", "ARGS",
              "words that make the command resume: appended in lives that resume, or put where "
              "the command has the word {resume}")
        .text(
            at_, "--at", "COMMAND",
            "run this in the life that resumes, in place of the command: another number of ranks, "
            "say. Needs DTensors, or tensors that every rank has")
        .number(lives_, "--lives", 3,
                "number of lives: A runs through, the others are one run that is killed in each "
                "life but the last; default: 3")
        .flag(every_step_, "--every-step",
              "record what is held at every step, not only around saves and loads")
        .texts(links_, "--link", "ENTRY",
               "link this entry of the working directory and do not copy it: what is only read")
        .texts(without_, "--without", "ENTRY",
               "leave this entry of the working directory out, such as old checkpoints")
        .flag(in_place_, "--in-place",
              "run in the working directory itself; the command must write below {work}")
        .text(work_, "--work", "DIR",
              "make the lives' working directories there, and keep them; all nodes must see it")
        .text(python_, "--python", "PATH",
              "the Python for the words python and python3 of the command")
        .texts(stand_ins_, "--stand-in", "FILE",
               "import this file of Python first in each process; the report lists it")
        .text(package_, "--package", "DIR",
              "folder of the Python package, if it is not beside this program")
        .number(timeout_, "--timeout", 1,
                "life A is ended if it writes no record and no output for N seconds; default: 600. "
                "Later lives follow life A")
        .text(record_, "--record", "DIR", "keep there what is recorded and printed")
        .text(judge_, "--judge", "DIR", "run nothing; judge what was recorded there")
        .number(retries_, "--retries", 0,
                "if it did not pass, run all lives again, up to N times; a pass is then flaky "
                "(FLAKY), and the exit code is 3")
        .flag(allow_flaky_, "--allow-flaky", "exit code 0 if it is flaky; the report says it")
        .text(label_, "--name", "NAME", "name in the report; default: the script's")
        .text(report_, "--report", "DIR",
              "write report.json, junit.xml, report.html and summary.md there")
        .flag(quiet_, "-q,--quiet", "no progress");
  }

  ExitCode run(const Console& console) override {
    require_sense();
    const Interrupts interrupts;
    for (const auto& directory : {report_, record_}) {
      if (!directory.empty()) driver::require_writable(directory);
    }
    const auto start = std::chrono::steady_clock::now();
    reports::Report report = driver::empty_report(reports::ReportLane::kWatch);
    driver::WatchOutcome outcome;
    std::int64_t tries = 0;
    const auto next_try = [&]() -> std::optional<reports::ScenarioResult> {
      if (outcome.interrupted) return std::nullopt;
      if (++tries > 1) console.out << fmt::format("\ntry {} of {}:\n", tries, retries_ + 1);
      const auto begin = std::chrono::steady_clock::now();
      outcome = judge_.empty() ? run_lives(console, tries) : judge_records();
      return shown_result(outcome, std::chrono::steady_clock::now() - begin, console);
    };
    auto result = reports::with_retries(*next_try(), static_cast<std::size_t>(retries_), next_try);
    if (is_flaky(result)) console.out << "resume: flaky: " << result.reason << '\n';
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    report.seconds = seconds.count();
    report.interrupted = outcome.interrupted;
    report.scenarios.push_back(std::move(result));
    report.planned = 1;
    add_not_claimed(outcome, report);
    report.verdict = reports::overall(report);
    if (report.verdict != reports::Verdict::kPass) {
      console.out << "  see it again: " << report.scenarios.back().replay << '\n';
      const auto& code = report.scenarios.back().code;
      if (!code.empty()) console.out << "  what that means: reprise explain " << code << '\n';
    }
    if (!report_.empty()) {
      const std::string digest = driver::write_report(report, report_);
      console.out << "\nreport: " << report_ << "/report.json\nsha256: " << digest << '\n';
    }
    if (allow_flaky_ && is_flaky_alone(report)) return ExitCode::kPass;
    return exit_code_for(report.verdict);
  }

 private:
  /// Prints what was found, and returns it for the report.
  reports::ScenarioResult shown_result(const driver::WatchOutcome& outcome,
                                       std::chrono::duration<double> seconds,
                                       const Console& console) const {
    if (outcome.interrupted) console.out << "interrupted: what follows is of the lives that ran\n";
    console.out << watch_text(outcome.judgement);
    auto result = driver::watch_result(outcome.lives, outcome.judgement);
    result.name = "watch/" + result_name();
    result.seconds = seconds.count();
    result.replay = replay();
    return result;
  }

  void require_sense() const {
    checked_moment();
    if (!judge_.empty() && retries_ > 0) {
      throw Error(Code::kUsage, "--judge runs nothing; leave out --retries");
    }
    if (!judge_.empty() && !command_.empty()) {
      throw Error(Code::kUsage, "--judge runs nothing; leave out the command");
    }
    if (judge_.empty() && command_.empty()) {
      throw Error(Code::kUsage, "needs a command after --, or --judge DIR");
    }
    const auto names_work = [](const std::string& word) {
      return word.find("{work}") != std::string::npos;
    };
    const bool work = std::ranges::any_of(command_, names_work) || names_work(resume_args_);
    if (in_place_ && !work) {
      throw Error(Code::kUsage,
                  "--in-place needs {work} in the command: where a life writes must be its own");
    }
    if (in_place_ && (!links_.empty() || !without_.empty())) {
      throw Error(Code::kUsage, "--in-place copies nothing: leave out --link and --without");
    }
    if (!at_.empty() && (lives_ != 3 || in_place_)) {
      throw Error(Code::kUsage,
                  "--at has three lives, in copies: leave out --lives and --in-place");
    }
    if (lives_ > kLivesMost) {
      throw Error(Code::kUsage, fmt::format("--lives is at most {}", kLivesMost));
    }
    if (record_.empty()) return;
    if (fs::exists(record_) && !fs::is_empty(record_)) {
      throw Error(Code::kUsage, "--record: is not empty; name a folder that is new",
                  {.file = record_});
    }
  }

  driver::KillMoment checked_moment() const {
    if (moment_.empty()) return driver::KillMoment::kBetween;
    if (moment_ == "save") return driver::KillMoment::kSaveBegins;
    if (moment_ == "written") return driver::KillMoment::kSaveWritten;
    if (moment_ == "async") return driver::KillMoment::kAsynchronous;
    throw Error(Code::kUsage, "--kill-in is save, written or async, not '" + moment_ + "'");
  }

  std::string checked_python() const {
    const char* given = std::getenv("REPRISE_PYTHON");
    const std::string python = !python_.empty() ? python_ : given != nullptr ? given : "";
    return python.find('/') == std::string::npos ? python : fs::absolute(python).string();
  }

  /// Returns the folder of a try; each has its own.
  static std::string folder_of(const std::string& folder, std::int64_t tries) {
    const std::string whole = fs::absolute(folder).string();
    return tries == 1 ? whole : whole + "/retry-" + std::to_string(tries - 1);
  }

  driver::WatchRequest request_for(const Console& console, const std::string& scratch,
                                   std::int64_t tries) const {
    driver::WatchRequest request;
    request.command = command_;
    request.other_command = shell_words(at_);
    request.resume_words = shell_words(resume_args_);
    if (kill_ >= 0) request.kill = kill_;
    request.kill_moment = checked_moment();
    request.lives = static_cast<std::size_t>(lives_);
    request.every_step = every_step_;
    for (const auto& file : stand_ins_) {
      if (!fs::is_regular_file(file)) throw Error(Code::kNotFound, "--stand-in", {.file = file});
      request.stand_ins.push_back(fs::absolute(file).string());
    }
    request.hook = driver::find_hook(console.executable, package_);
    request.python = checked_python();
    request.source = {.directory = fs::current_path(),
                      .links = links_,
                      .without = without_,
                      .in_place = in_place_};
    request.folder = record_.empty() ? scratch + "/records" : folder_of(record_, tries);
    request.work = work_.empty() ? scratch : folder_of(work_, tries);
    request.keep_work = !work_.empty();
    request.silence_s_max = timeout_;
    for (const auto& own : {record_, report_, work_}) {
      if (own.empty()) continue;
      const fs::path relative =
          fs::absolute(own).lexically_normal().lexically_relative(request.source.directory);
      if (!relative.empty() && *relative.begin() != "..") {
        request.source.without.push_back(relative.string());
      }
    }
    if (!work_.empty()) fs::create_directories(request.work);
    return request;
  }

  driver::WatchOutcome run_lives(const Console& console, std::int64_t tries) const {
    const driver::ScratchDirectory scratch;
    const driver::WatchRequest request = request_for(console, fs::canonical(scratch.path()), tries);
    PosixClock clock;
    ProgressLine line(console, clock, "watch",
                      quiet_ ? ProgressLine::Shown::kNever : ProgressLine::Shown::kYes);
    double told = 0;
    std::string life;
    const auto listener = [&](const driver::WatchProgress& progress) {
      const std::string text = fmt::format("life {} ({} of {}), {:.0f} s, {} recorded and printed",
                                           progress.life, progress.number + 1, progress.lives,
                                           progress.seconds, human_bytes(progress.bytes));
      line.show(text);
      if (life != progress.life) told = 0;
      life = progress.life;
      if (quiet_ || console.err_is_terminal || progress.seconds - told < kSecondsPerLine) return;
      told = progress.seconds;
      console.err << "watch: " << text << '\n';
    };
    return driver::run_watch(request, listener, &Interrupts::came);
  }

  driver::WatchOutcome judge_records() const {
    driver::WatchOutcome outcome{.lives = driver::read_lives(judge_)};
    outcome.judgement = driver::judge_watch(outcome.lives);
    return outcome;
  }

  static void add_not_claimed(const driver::WatchOutcome& outcome, reports::Report& report) {
    for (const auto& [name, why] : outcome.judgement.not_judged) {
      report.not_claimed.push_back("not judged: " + name + ": " + why);
    }
    if (!driver::tells_wholes(outcome.lives.uninterrupted.recording)) {
      report.not_claimed.emplace_back("a resume under another layout: the lives have the same");
    }
    std::set<std::string> stand_ins;
    for (const auto& [rank, recording] : outcome.lives.uninterrupted.recording.ranks) {
      stand_ins.insert(recording.stand_ins.begin(), recording.stand_ins.end());
    }
    for (const auto& file : stand_ins) {
      report.not_claimed.push_back("the command alone: " + file + " was imported first");
    }
  }

  /// Returns the name of the script, without its folder and ending.
  std::string result_name() const {
    if (!label_.empty()) return label_;
    if (!judge_.empty()) {
      const fs::path folder = fs::absolute(judge_).lexically_normal();
      return (folder.has_filename() ? folder : folder.parent_path()).filename().string();
    }
    for (const auto& word : command_) {
      if (word.ends_with(".py")) return fs::path(word).stem().string();
    }
    return fs::path(command_.front()).filename().string();
  }

  std::string replay() const {
    std::string line = "reprise watch";
    const auto add = [&line](const std::string& option, const std::string& value) {
      if (!value.empty()) line += " " + option + " " + shell_word(value);
    };
    if (!judge_.empty()) return line + " --judge " + shell_word(judge_);
    if (kill_ >= 0) add("--kill", std::to_string(kill_));
    add("--kill-in", moment_);
    if (!resume_args_.empty()) line += " " + shell_word("--resume-args=" + resume_args_);
    add("--at", at_);
    if (lives_ != 3) add("--lives", std::to_string(lives_));
    if (every_step_) line += " --every-step";
    for (const auto& entry : links_) add("--link", entry);
    for (const auto& entry : without_) add("--without", entry);
    if (in_place_) line += " --in-place";
    add("--work", work_);
    add("--python", python_);
    for (const auto& file : stand_ins_) add("--stand-in", file);
    add("--package", package_);
    line += " --";
    for (const auto& word : command_) line += " " + shell_word(word);
    return line;
  }

  static constexpr std::int64_t kLivesMost = 17;  // A to Q, before the name of the repeat

  std::vector<std::string> command_;
  std::int64_t kill_ = -1;
  std::string moment_;
  std::string resume_args_;
  std::string at_;
  std::int64_t lives_ = 3;
  bool every_step_ = false;
  std::vector<std::string> links_;
  std::vector<std::string> without_;
  bool in_place_ = false;
  std::string work_;
  std::string python_;
  std::vector<std::string> stand_ins_;
  std::string package_;
  std::int64_t timeout_ = 600;
  std::string record_;
  std::string judge_;
  std::int64_t retries_ = 0;
  bool allow_flaky_ = false;
  std::string label_;
  std::string report_;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_watch() { return std::make_unique<WatchVerb>(); }

}  // namespace reprise::cli
