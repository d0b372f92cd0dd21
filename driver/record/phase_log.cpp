#include "driver/record/phase_log.hpp"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/base/printable.hpp"
#include "core/ports/clock.hpp"
#include "core/ports/traced_ports.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

constexpr std::array kLevels = {std::pair{"off", spdlog::level::off},
                                std::pair{"info", spdlog::level::info},
                                std::pair{"debug", spdlog::level::debug}};
constexpr const char* kPattern = "%H:%M:%S.%e %v";
constexpr double kNanosecondsOfSecond = 1e9;

spdlog::level::level_enum level_named(const std::string& name) {
  for (const auto& [known, level] : kLevels) {
    if (name == known) return level;
  }
  throw Error(Code::kUsage,
              "there is no log level '" + name + "'; the levels are: off, info, debug");
}

spdlog::sink_ptr stderr_sink() {
  static const auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  return sink;
}

spdlog::sink_ptr sink_of(const LogOptions& options, const PhaseLog::Rank& own) {
  if (options.directory.empty()) return stderr_sink();
  const std::string file = log_file(options, own);
  try {
    return std::make_shared<spdlog::sinks::basic_file_sink_st>(file);
  } catch (const spdlog::spdlog_ex& error) {
    throw Error(Code::kIo, std::string("the log can't be written: ") + error.what(),
                {.file = file});
  }
}

}  // namespace

struct PhaseLog::State {
  Clock& clock;
  Trace& inner;
  spdlog::logger logger;
  std::string who;
  Step step = {};
  std::optional<Step> save = {};
  using Name = std::pair<std::optional<Step>, std::string>;
  std::map<Name, std::uint64_t> begun = {};  ///< start times by save, phase, protocol step
};

PhaseLog::PhaseLog(const LogOptions& options, const Rank& own, Clock& clock, Trace& inner)
    : state_(new State{.clock = clock,
                       .inner = inner,
                       .logger = spdlog::logger("reprise", sink_of(options, own)),
                       .who = own.scenario + " life " + std::to_string(own.life) + " rank " +
                              std::to_string(own.rank.value)}) {
  state_->logger.set_level(level_named(options.level));
  state_->logger.set_pattern(kPattern);
  state_->logger.flush_on(spdlog::level::debug);  // because a rank may be killed after any line
}

PhaseLog::~PhaseLog() = default;

void PhaseLog::at(Step step) { state_->step = step; }

void PhaseLog::within(std::optional<Step> save) { state_->save = save; }

void PhaseLog::event(const TraceEvent& event) {
  const std::string name =
      std::string(event.phase) + (event.detail.empty() ? "" : "/" + event.detail);
  const std::uint64_t now = state_->clock.now_ns();
  if (event.moment == Moment::kBegin) {
    state_->begun[{state_->save, name}] = now;
  } else {
    const auto begun = state_->begun.extract({state_->save, name});
    const double seconds =
        begun.empty() ? 0 : static_cast<double>(now - begun.mapped()) / kNanosecondsOfSecond;
    state_->logger.log(event.detail.empty() ? spdlog::level::info : spdlog::level::debug,
                       "{} step {} {}: {} bytes, {} items, {:.6f} s", state_->who,
                       state_->save.value_or(state_->step).value, printable(name), event.bytes,
                       event.items, seconds);
  }
  state_->inner.event(event);
}

LoggedPorts::LoggedPorts(const LogOptions& options, const PhaseLog::Rank& own, const Ports& inner,
                         Clock& clock)
    : log_(options.on() ? std::make_unique<PhaseLog>(options, own, clock, inner.trace) : nullptr),
      ports_(log_ ? traced(inner, *log_) : inner) {}

void require_log_level(const std::string& level) { level_named(level); }

std::string log_file(const LogOptions& options, const PhaseLog::Rank& rank) {
  return options.directory + "/" + rank.scenario + "/life" + std::to_string(rank.life) + "-rank" +
         std::to_string(rank.rank.value) + ".log";
}

}  // namespace reprise::driver
