#include "scenarios/cli/program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <new>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/print.hpp"
#include "scenarios/driver/build_info.hpp"

namespace reprise::cli {
namespace {

constexpr const char* kAbout =
    "Reads, judges and rewrites distributed checkpoints in PyTorch's torch_dist format, and tries\n"
    "to break the engine that writes them.";
constexpr const char* kExitCodes =
    "Exit codes: 0 pass or same, 1 fail or different, 2 wrong usage or unreadable input,\n"
    "            3 inconclusive, 4 not deterministic, 5 internal error";

std::string version_line() {
  const BuildInfo info = build_info();
  return fmt::format("reprise {}{} ({})", info.commit.substr(0, 12), info.dirty ? "+" : "",
                     info.build);
}

/// Names of a parser's options, with their dashes.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// The verb's parser that was reached, or the program's.
CLI::App& reached(CLI::App& app) {
  const auto used = app.get_subcommands();
  return used.empty() ? app : *used.front();
}

/// What to say about a command line that can't be read, with a suggestion where one is close.
std::string explain(CLI::App& app, const CLI::ParseError& error, const Verbs& verbs) {
  CLI::App& at = reached(app);
  std::string text = error.what();
  const auto extras = at.remaining();
  const auto all = app.remaining();
  const auto& unknown = extras.empty() ? all : extras;
  if (!unknown.empty()) {
    const std::string word = unknown.front().substr(0, unknown.front().find('='));
    const bool option = word.starts_with("-");
    std::vector<std::string> candidates = option_names(at);
    if (!option && &at == &app) {
      candidates.clear();
      for (const auto& verb : verbs) candidates.emplace_back(verb->name());
    }
    const char* kind = option ? "option" : (&at == &app ? "verb" : "argument");
    text = fmt::format("unknown {} '{}'", kind, word);
    const std::string close = closest(word, candidates);
    if (!close.empty()) text += fmt::format("; did you mean '{}'?", close);
  }
  const std::string verb = &at == &app ? "" : " " + at.get_name();
  return fmt::format("reprise{}: {}\nTry 'reprise{} --help'.\n", verb, text, verb);
}

ExitCode run_verb(Verb& verb, const Console& console) {
  const auto say = [&](std::string_view text) {
    console.out.flush();
    console.err << "reprise " << verb.name() << ": " << text << '\n';
  };
  try {
    return verb.run(console);
  } catch (const Error& error) {
    say(error.what());
    return error.code() == Code::kInternal ? ExitCode::kInternal : ExitCode::kUnusable;
  } catch (const CheckFailure& failure) {
    say(fmt::format("internal error: {}", failure.what()));
    return ExitCode::kInternal;
  } catch (const std::bad_alloc&) {
    say("internal error: out of memory");
    return ExitCode::kInternal;
  } catch (const std::exception& error) {
    say(fmt::format("internal error: {}", error.what()));
    return ExitCode::kInternal;
  }
}

}  // namespace

ExitCode run_program(const std::vector<std::string>& arguments, const Verbs& verbs,
                     const Console& console) {
  CLI::App app(kAbout, "reprise");
  app.require_subcommand(1);
  app.footer(kExitCodes);
  app.set_version_flag("--version", version_line());
  app.get_formatter()->column_width(34);
  for (const auto& verb : verbs) {
    CLI::App* parser = app.add_subcommand(std::string(verb->name()), std::string(verb->summary()));
    if (verb->summary().empty()) parser->group("");
    parser->footer(fmt::format("Examples:\n{}", verb->examples()));
    Options options(*parser);
    verb->declare(options);
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& success) {
    app.exit(success, console.out, console.err);
    return ExitCode::kPass;
  } catch (const CLI::ParseError& error) {
    console.err << explain(app, error, verbs);
    return ExitCode::kUnusable;
  }
  const std::string chosen = app.get_subcommands().front()->get_name();
  const auto verb = std::find_if(verbs.begin(), verbs.end(),
                                 [&chosen](const auto& v) { return v->name() == chosen; });
  const ExitCode code = run_verb(**verb, console);
  console.out.flush();
  return code;
}

}  // namespace reprise::cli
