#include "cli/program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <new>

#include "cli/output/json_output.hpp"
#include "cli/output/plain_text.hpp"
#include "cli/output/run_text.hpp"
#include "cli/output/version_line.hpp"
#include "core/base/caught.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/base/print.hpp"
#include "driver/language/catalogue.hpp"
#include "reports/read_error.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

constexpr const char* kAbout =
    "Reads, judges and rewrites distributed checkpoints in PyTorch's torch_dist format, and tries\n"
    "to break the engine that writes them.";
constexpr const char* kExitCodes =
    "Exit codes: 0 pass or same, 1 fail or different, 2 wrong usage or unreadable input,\n"
    "            3 inconclusive, 4 not deterministic, 5 internal error, or output that could not "
    "be written";

/// Returns the names of a parser's options, including their dashes.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// Returns the parser of the chosen verb or subject; the program's parser if no verb was chosen.
CLI::App& reached(CLI::App& app) {
  const auto used = app.get_subcommands();
  return used.empty() ? app : reached(*used.front());
}

/// Returns the words by which the parser is reached, such as "reprise search explore".
std::string called(const CLI::App& app) {
  return (app.get_parent() == nullptr ? "" : called(*app.get_parent()) + " ") + app.get_name();
}

bool is_alias(const CLI::App& app) { return app.get_group().empty(); }

/// Explains why a command line cannot be parsed. Suggests a similar name if there is one.
std::string explain(CLI::App& app, const CLI::ParseError& error) {
  CLI::App& at = reached(app);
  std::string text = error.what();
  const auto extras = at.remaining();
  const auto all = app.remaining();
  const auto& unknown = extras.empty() ? all : extras;
  if (!unknown.empty()) {
    const std::string word = unknown.front().substr(0, unknown.front().find('='));
    const bool option = word.starts_with("-");
    std::vector<std::string> candidates = option_names(at);
    const auto below = at.get_subcommands([](const CLI::App* sub) { return !is_alias(*sub); });
    if (!option && !below.empty()) {
      candidates.clear();
      for (const CLI::App* sub : below) candidates.push_back(sub->get_name());
    }
    const char* kind = option          ? "option"
                       : &at == &app   ? "verb"
                       : below.empty() ? "argument"
                                       : "subject";
    text = fmt::format("unknown {} '{}'", kind, word);
    const std::string close = closest(word, candidates);
    if (!close.empty()) text += fmt::format("; did you mean '{}'?", close);
  }
  return fmt::format("{0}: {1}\nTry '{0} --help'.\n", called(at), text);
}

/// Converts an exception to an Error. Running out of memory is not a defect of the program: the
/// input needs more memory than is available.
Error error_of(const std::exception& caught, const CLI::App& parser) {
  if (dynamic_cast<const reports::NewerError*>(&caught) != nullptr) {
    return Error(Code::kUnsupported, std::string(caught.what()) + ": " + reports::kReadNewer);
  }
  if (dynamic_cast<const reports::ReadError*>(&caught) != nullptr) {
    return Error(Code::kTornFile, "the report can't be read: " + std::string(caught.what()));
  }
  const auto* memory = dynamic_cast<const std::bad_alloc*>(&caught);
  if (memory == nullptr) return error_from(caught);
  std::vector<std::string> named;
  for (const CLI::Option* option : parser.get_options()) {
    if (!option->get_positional()) continue;
    named.insert(named.end(), option->results().begin(), option->results().end());
  }
  return limit_from(*memory, join(named, " "));
}

/// True if the option `name` is a flag and is set.
bool is_set(const CLI::App& parser, const std::string& name) {
  const CLI::Option* option = parser.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_max() == 0 && option->count() > 0;
}

/// The program's output streams. They escape control characters that a terminal would obey.
class Edge {
 public:
  explicit Edge(const Console& outside) : out_text_(outside.out), err_text_(outside.err) {
    err_ << std::unitbuf;
    console_.out_width = outside.out_width;
    console_.err_is_terminal = outside.err_is_terminal;
    console_.terminal = outside.terminal;
    console_.executable = outside.executable;
    console_.launched_as = outside.launched_as;
  }

  const Console& console() const { return console_; }
  bool printed() const { return out_text_.used(); }

  /// Flushes the output and returns `code`; kInternal if the output could not be written.
  ExitCode leave(ExitCode code) {
    out_.flush();
    if (out_.good()) return code;
    err_ << "reprise: standard output is full or closed: the output is incomplete\n";
    return ExitCode::kInternal;
  }

 private:
  PlainText out_text_;
  PlainText err_text_;
  std::ostream out_{&out_text_};
  std::ostream err_{&err_text_};
  Console console_{.out = out_, .err = err_};
};

ExitCode run_verb(Verb& verb, const CLI::App& parser, const Edge& edge) {
  const Console& console = edge.console();
  try {
    return verb.run(console);
  } catch (const std::exception& caught) {
    const Error error = error_of(caught, parser);
    const bool internal = error.code() == Code::kInternal;
    if (is_set(parser, "--json") && !edge.printed()) console.out << error_json(error);
    console.out.flush();
    const auto* files = dynamic_cast<const driver::CatalogueError*>(&caught);
    if (files != nullptr) {
      console.err << mistakes_text(files->catalogue()) << called(parser) << ": nothing was run\n";
      return ExitCode::kUnusable;
    }
    console.err << called(parser) << ": "
                << (internal ? "internal error: " + error.message() : error.what()) << '\n';
    return internal ? ExitCode::kInternal : ExitCode::kUnusable;
  }
}

CLI::App& add_verb(CLI::App& at, Verb& verb) {
  CLI::App* sub = at.add_subcommand(std::string(verb.name()), std::string(verb.summary()));
  sub->footer(fmt::format("Examples:\n{}", verb.examples()));
  Options options(*sub);
  verb.declare(options);
  return *sub;
}

}  // namespace

std::shared_ptr<CLI::App> parser_of(const Verbs& verbs) {
  auto parser = std::make_shared<CLI::App>(kAbout, "reprise");
  CLI::App& app = *parser;
  app.require_subcommand(1);
  app.footer(kExitCodes);
  app.set_version_flag("--version", version_line());
  app.get_formatter()->column_width(34);
  CLI::App* search = nullptr;
  for (const auto& verb : verbs) {
    CLI::App& named = add_verb(app, *verb);
    if (!verb->is_subject()) continue;
    named.group("");
    if (search == nullptr) {
      search = app.add_subcommand("search", "Look for failures that nobody wrote down");
      search->require_subcommand(1);
    }
    add_verb(*search, *verb);
  }
  return parser;
}

ExitCode run_program(const std::vector<std::string>& arguments, const Verbs& verbs,
                     const Console& outside) {
  Edge edge(outside);
  const Console& console = edge.console();
  const std::shared_ptr<CLI::App> program = parser_of(verbs);
  CLI::App& app = *program;
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& success) {
    app.exit(success, console.out, console.err);
    return edge.leave(ExitCode::kPass);
  } catch (const CLI::ParseError& error) {
    console.err << explain(app, error);
    return ExitCode::kUnusable;
  }
  const CLI::App& parser = reached(app);
  const std::string chosen = parser.get_name();
  if (is_alias(parser)) {
    console.err << fmt::format("{}: this is now 'reprise search {}'\n", called(parser), chosen);
  }
  const auto verb = std::find_if(verbs.begin(), verbs.end(),
                                 [&chosen](const auto& v) { return v->name() == chosen; });
  return edge.leave(run_verb(**verb, parser, edge));
}

}  // namespace reprise::cli
